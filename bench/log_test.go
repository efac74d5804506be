package bench

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// loggedToMemory is the transition with both of its records, the and
// the settle's, encoded and kept in memory. The peers log nothing.
func loggedToMemory() row {
	return logged("logged to memory", func(*testing.B) io.Writer { return &ring{buf: make([]byte, 1<<20)} })
}

// loggedToFile is the same, with the records written to a file.
func loggedToFile() row {
	return logged("logged to file", func(b *testing.B) io.Writer {
		f, err := os.Create(filepath.Join(b.TempDir(), "log"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { f.Close() })
		return &rewound{file: f}
	})
}

func logged(name string, sink func(*testing.B) io.Writer) row {
	r := transition()
	r.name = name
	for i := range r.peers {
		r.peers[i].times = 1
	}
	r.ours = func(b *testing.B) {
		w, err := translog.NewWriter(sink(b), machine.MustCompile(toggle()), translog.Options{Format: translog.Binary})
		if err != nil {
			b.Fatal(err)
		}
		alternate(b, w.World("toggle", nil, 0))
		if err := w.Close(); err != nil || w.Dropped() > 0 {
			b.Fatalf("%d records dropped, %v", w.Dropped(), err)
		}
	}
	return r
}

// ring is a sink in memory that forgets what is older than its length.
type ring struct {
	buf []byte
	at  int
}

func (r *ring) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := copy(r.buf[r.at:], rest)
		rest = rest[n:]
		r.at = (r.at + n) % len(r.buf)
	}
	return len(p), nil
}

// rewound is a file that starts over when it is long, so that a fast machine
// does not fill its disk.
type rewound struct {
	file *os.File
	at   int64
}

func (r *rewound) Write(p []byte) (int, error) {
	if r.at > 256<<20 {
		r.at = 0
	}
	n, err := r.file.WriteAt(p, r.at)
	r.at += int64(n)
	return n, err
}

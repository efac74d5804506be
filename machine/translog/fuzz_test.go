package translog_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runfence/runfence/machine/translog"
)

// FuzzBinary reads damaged binary logs: as they are, and with checksums that
// hold, so that what is behind the checksums is reached too. What does not
// begin as a log does is also read as what follows a header.
func FuzzBinary(f *testing.F) {
	_, header := headers(f)
	seeds(f, translog.Binary, header)
	f.Fuzz(func(t *testing.T, b []byte) {
		checkLog(t, b)
		if bytes.HasPrefix(b, []byte(header[:4])) {
			checkLog(t, resealFrames(b, 12))
		} else {
			checkLog(t, append([]byte(header), resealFrames(b, 0)...))
		}
	})
}

// FuzzJSONLines is FuzzBinary for logs in JSON Lines.
func FuzzJSONLines(f *testing.F) {
	header, _ := headers(f)
	seeds(f, translog.JSONLines, header)
	f.Fuzz(func(t *testing.T, b []byte) {
		checkLog(t, b)
		if bytes.HasPrefix(b, []byte(header[:4])) {
			checkLog(t, resealLines(b))
		} else {
			checkLog(t, append([]byte(header), resealLines(b)...))
		}
	})
}

func seeds(f *testing.F, format translog.Format, header string) {
	whole := record(f, translog.Options{Format: format})
	f.Add(whole)
	// The header and the first world are the same in every log of the rig.
	b := whole[len(header):]
	for at := range boundaries(append([]byte(header[:12]), b...), format) {
		if at -= 12; at > 0 && at < len(b) {
			f.Add(b[at:]) // and so on: every entry is the first of a seed
		}
	}
	for _, s := range hostile(f) {
		if len(s) < 8<<10 && strings.HasPrefix(s, header) {
			f.Add([]byte(s[len(header):]))
		} else if len(s) < 8<<10 && s[0] == header[0] {
			f.Add([]byte(s))
		}
	}
}

// resealFrames gives every frame the check byte and the checksum it should have.
func resealFrames(b []byte, at int) []byte {
	out := bytes.Clone(b[:min(len(b), at)])
	for at+4 <= len(b) {
		n := int(binary.LittleEndian.Uint32(b[at:]) & 0xffffff)
		end := min(at+4+n, len(b))
		out = append(out, frame(string(b[at+4:end]))...)
		at = end + 4
	}
	return out
}

// resealLines gives every line the checksum it should have.
func resealLines(b []byte) []byte {
	var out []byte
	for _, l := range strings.Split(string(b), "\n") {
		if i := strings.LastIndex(l, `,"crc":`); i >= 0 {
			l = l[:i]
		}
		out = append(out, line(strings.TrimSuffix(l, "}"))...)
	}
	return out
}

// checkLog reads a log. Whatever it is, the error is one of those promised, and
// what is delivered survives both encodings.
func checkLog(t *testing.T, b []byte) {
	r, err := translog.NewReader(bytes.NewReader(b))
	var es []translog.Entry
	var e translog.Entry
	for err == nil {
		if err = r.Next(&e); err == nil {
			e.Place = translog.Place{}
			es = append(es, e)
		}
	}
	if err != io.EOF && !errors.Is(err, translog.ErrEmpty) && !errors.Is(err, translog.ErrNotALog) && !errors.As(err, new(*translog.SchemaError)) &&
		!errors.As(err, new(*translog.TornError)) && !errors.As(err, new(*translog.CorruptError)) && !errors.As(err, new(*translog.NameError)) {
		t.Fatalf("an error that nobody was promised: %v", err)
	}
	if len(es) == 0 {
		return
	}
	for _, f := range formats {
		var out bytes.Buffer
		enc, err := translog.NewEncoder(&out, f, r.Header())
		if err != nil {
			t.Fatal(err)
		}
		for i := range es {
			if err := enc.Encode(&es[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := enc.Flush(); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(out.Bytes())
		if err != nil {
			t.Fatalf("%v: %v\n%q", f, err, out.Bytes())
		}
		if d := cmp.Diff(es, got); d != "" {
			t.Fatalf("%v: %s", f, d)
		}
	}
}

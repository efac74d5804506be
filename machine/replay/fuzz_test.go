package replay_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"

	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
)

// FuzzReplay replays what follows the header of a binary log, with checksums
// that hold. Whatever it says, the replay ends, and the error is one of those
// promised.
func FuzzReplay(f *testing.F) {
	log := record(f, translog.Options{})
	r, err := translog.NewReader(bytes.NewReader(log))
	if err != nil {
		f.Fatal(err)
	}
	header := log[:r.Place().Offset]
	rules := compiled(f, rig()...)
	var e translog.Entry
	for n := 0; r.Next(&e) == nil; n++ {
		if n%8 == 0 {
			f.Add(log[len(header):r.Place().Offset])
		}
	}
	f.Add(log[len(header):])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append(bytes.Clone(header), reseal(b)...)
		for _, src := range []io.Reader{bytes.NewReader(b), pipe{bytes.NewReader(b)}} {
			res, err := replay.Run(src, rules, replay.Options{MaxWorlds: 4, MaxInstances: 200, SkipGaps: len(b)%2 == 0})
			var d *replay.Divergence
			switch {
			case errors.As(err, &d):
				if err := d.Explain(io.Discard); err != nil {
					t.Fatal(err)
				}
			case err == nil, errors.As(err, new(*replay.GapError)), errors.As(err, new(*replay.WorldError)),
				errors.As(err, new(*translog.CorruptError)), errors.As(err, new(*translog.TornError)):
			default:
				t.Fatalf("an error that nobody was promised: %v", err)
			}
			for _, w := range res.Worlds {
				w.Instances()
			}
		}
	})
}

// reseal gives every frame the check byte and the checksum it should have.
func reseal(b []byte) []byte {
	var out []byte
	for at := 0; at+4 <= len(b); {
		n := int(binary.LittleEndian.Uint32(b[at:]) & 0xffffff)
		end := min(at+4+n, len(b))
		m := uint32(end - at - 4)
		start := len(out)
		out = binary.LittleEndian.AppendUint32(out, m|(m^m>>8^m>>16^0xa5)&0xff<<24)
		out = append(out, b[at+4:end]...)
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(out[start:], crc32.MakeTable(crc32.Castagnoli)))
		at = end + 4
	}
	return out
}

package states

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// golden is an invocation with a tensor of two dimensions and one scalar, and
// its packet, written out by hand from the layout.
var golden = &Invocation{
	Callable: 3, Occupancy: 0x11, Dispatch: 0x22, Runtime: 0x1000, RunEpoch: 0x33,
	Tensors: []Tensor{{Address: 0x2000, Bytes: 24, Type: Float32, Rank: 2, Dims: [MaxRank]uint64{2, 3}}},
	Scalars: []uint64{0x44},
}

const goldenPacket = "52464950" + "0100" + "2800" + "98000000" + "03000000" +
	"1100000000000000" + "01000000" + "01000000" + "2200000000000000" +
	"0010000000000000" + "3300000000000000" +
	"0020000000000000" + "1800000000000000" + "0700" + "0200" + "00000000" +
	"0200000000000000" + "0300000000000000" +
	"0000000000000000" + "0000000000000000" + "0000000000000000" + "0000000000000000" + "0000000000000000" + "0000000000000000" +
	"4400000000000000"

func expected(in *Invocation) Expected {
	return Expected{
		Callable: in.Callable, Occupancy: in.Occupancy, Dispatch: in.Dispatch, RunEpoch: in.RunEpoch,
		Tensors: uint32(len(in.Tensors)), Scalars: uint32(len(in.Scalars)),
	}
}

func TestGoldenPacket(t *testing.T) {
	p, err := AppendPacket(nil, golden)
	require.NoError(t, err)
	require.Equal(t, goldenPacket, hex.EncodeToString(p))
	in, err := ParsePacket(p, expected(golden))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(golden, in))
	require.Zero(t, testing.AllocsPerRun(50, func() { _ = CheckPacket(p, expected(golden)) }), "checking makes no storage")
}

// Each check refuses, names itself, and comes before the ones after it (F147).
func TestPacketChecks(t *testing.T) {
	good, err := hex.DecodeString(goldenPacket)
	require.NoError(t, err)
	for _, c := range []struct {
		check  string
		offset int
		spoil  func(p []byte) []byte
	}{
		{"framing", 55, func(p []byte) []byte { return p[:55] }},
		{"framing", 0, func([]byte) []byte { return nil }},
		{"framing", 0, func(p []byte) []byte { p[0]++; return p }},
		{"framing", 4, func(p []byte) []byte { p[4]++; return p }},
		{"framing", 6, func(p []byte) []byte { p[6]--; return p }},
		{"framing", 8, func(p []byte) []byte { p[8]++; return p }},
		{"framing", 8, func(p []byte) []byte { return append(p, 0) }},
		{"framing", 8, func(p []byte) []byte { p[24]++; return p }},
		{"count", 24, func(p []byte) []byte { p[27] = 0xff; return p }},
		{"count", 24, func(p []byte) []byte { p[31] = 0xff; return p }},
		{"binding", 12, func(p []byte) []byte { p[12]++; return p }},
		{"generation", 16, func(p []byte) []byte { p[16]++; return p }},
		{"binding", 32, func(p []byte) []byte { p[32]++; return p }},
		{"epoch", 48, func(p []byte) []byte { p[48]++; return p }},
		{"runtime", 40, func(p []byte) []byte { p[41] = 0; return p }},
		{"geometry", 56, func(p []byte) []byte { p[57] = 0; return p }},
		{"geometry", 56, func(p []byte) []byte { p[56]++; return p }},
		{"geometry", 64, func(p []byte) []byte { p[64]++; return p }},
		{"geometry", 64, func(p []byte) []byte {
			for i := 56; i < 64; i++ {
				p[i] = 0xff
			}
			p[56] = 0xfc
			return p
		}},
		{"geometry", 72, func(p []byte) []byte { p[72] = 99; return p }},
		{"geometry", 74, func(p []byte) []byte { p[74] = 9; return p }},
		{"geometry", 76, func(p []byte) []byte { p[76] = 1; return p }},
		{"geometry", 80, func(p []byte) []byte { p[80] = 0; return p }},
		{"geometry", 88, func(p []byte) []byte { p[95] = 0xff; return p }},
		{"geometry", 96, func(p []byte) []byte { p[96] = 1; return p }},
	} {
		p := c.spoil(append([]byte(nil), good...))
		in, err := ParsePacket(p, expected(golden))
		require.Nil(t, in)
		var e *PacketError
		require.ErrorAs(t, err, &e, "%s at %d", c.check, c.offset)
		require.Equal(t, c.check, e.Check, err)
		require.Equal(t, c.offset, e.Offset, err)
	}
	// What the host expects counts as much as what the packet says.
	for _, spoil := range []func(*Expected){
		func(e *Expected) { e.Callable++ },
		func(e *Expected) { e.Occupancy++ },
		func(e *Expected) { e.Dispatch++ },
		func(e *Expected) { e.RunEpoch++ },
		func(e *Expected) { e.Tensors++ },
		func(e *Expected) { e.Scalars++ },
	} {
		e := expected(golden)
		spoil(&e)
		var pe *PacketError
		require.ErrorAs(t, CheckPacket(good, e), &pe)
	}
	// A zero identity names nothing, even if both sides have it.
	zero := *golden
	zero.Occupancy = 0
	_, err = AppendPacket([]byte("kept"), &zero)
	var e *PacketError
	require.True(t, errors.As(err, &e) && e.Check == "generation")
}

func TestPacketRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := &Invocation{
			Callable:  rapid.Uint32Range(0, MaxCallables-1).Draw(t, "callable"),
			Occupancy: rapid.Uint64Min(1).Draw(t, "occupancy"), Dispatch: rapid.Uint64Min(1).Draw(t, "dispatch"),
			Runtime: rapid.Uint64Min(1).Draw(t, "runtime"), RunEpoch: rapid.Uint64Min(1).Draw(t, "epoch"),
			Tensors: []Tensor{}, Scalars: rapid.SliceOfN(rapid.Uint64(), 0, 5).Draw(t, "scalars"),
		}
		for range rapid.IntRange(0, 4).Draw(t, "tensors") {
			x := Tensor{Type: ElementType(rapid.IntRange(1, 8).Draw(t, "type")), Rank: uint16(rapid.IntRange(0, MaxRank).Draw(t, "rank"))}
			x.Bytes = x.Type.Size()
			for d := range x.Rank {
				x.Dims[d] = rapid.Uint64Range(1, 9).Draw(t, "dim")
				x.Bytes *= x.Dims[d]
			}
			x.Address = x.Type.Size() * rapid.Uint64Range(1, 1<<40).Draw(t, "address")
			in.Tensors = append(in.Tensors, x)
		}
		p, err := AppendPacket(nil, in)
		require.NoError(t, err)
		out, err := ParsePacket(p, expected(in))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(in, out))
	})
}

// FuzzPacket throws bytes at the parser, with the counts that they claim.
func FuzzPacket(f *testing.F) {
	good, err := hex.DecodeString(goldenPacket)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:56])
	f.Add([]byte("RFIP"))
	f.Fuzz(func(t *testing.T, p []byte) {
		want := expected(golden)
		if len(p) >= 32 {
			want.Tensors, want.Scalars = uint32(p[24]), uint32(p[28])
		}
		in, err := ParsePacket(p, want)
		if err != nil {
			var e *PacketError
			if !errors.As(err, &e) || in != nil {
				t.Fatalf("%v with %v", err, in)
			}
			return
		}
		q, err := AppendPacket(nil, in)
		if err != nil || string(p) != string(q) {
			t.Fatalf("a packet that is accepted is not the one that is made: %v", err)
		}
	})
}

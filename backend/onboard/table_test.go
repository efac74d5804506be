//go:build cgo && linux

package onboard

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The table against a map: what was put and not taken away is found, and
// nothing else is; no handle comes twice.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab table
		model := map[uint64]uintptr{}
		claimed := map[uint64]bool{}
		var minted []uint64
		seen := map[uint64]bool{}
		pick := func(t *rapid.T) uint64 {
			if len(minted) == 0 || rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
				return rapid.Uint64().Draw(t, "handle")
			}
			return rapid.SampledFrom(minted).Draw(t, "handle")
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				ref := uintptr(rapid.IntRange(1, 1000).Draw(t, "ref"))
				h := tab.put(object{ref: ref})
				if seen[h] || h == 0 {
					t.Fatalf("handle %#x was minted twice", h)
				}
				seen[h], model[h] = true, ref
				minted = append(minted, h)
			},
			"claim": func(t *rapid.T) {
				h := pick(t)
				o, ok := tab.claim(h)
				ref, want := model[h]
				want = want && !claimed[h]
				if ok != want || (ok && o.ref != ref) {
					t.Fatalf("claim(%#x) = %v, %v; want %v, %v", h, o.ref, ok, ref, want)
				}
				if ok {
					claimed[h] = true
				}
			},
			"settle": func(t *rapid.T) {
				h, gone := pick(t), rapid.Bool().Draw(t, "gone")
				tab.settle(h, gone)
				if claimed[h] {
					delete(claimed, h)
					if gone {
						delete(model, h)
					}
				}
			},
			"empty": func(t *rapid.T) {
				tab.empty()
				clear(model)
				clear(claimed)
			},
			"replace": func(*rapid.T) {
				all := tab.replace(func(o object) (object, bool) { o.ref++; return o, o.ref%5 != 0 })
				dropped := false
				for h := range model {
					if model[h]++; model[h]%5 == 0 {
						delete(model, h)
						delete(claimed, h)
						dropped = true
					}
				}
				if all == dropped {
					t.Fatalf("replace said %v", all)
				}
			},
			"": func(t *rapid.T) {
				h := pick(t)
				o, ok := tab.get(h)
				ref, want := model[h]
				want = want && !claimed[h]
				if ok != want || (ok && o.ref != ref) {
					t.Fatalf("get(%#x) = %v, %v; want %v, %v", h, o.ref, ok, ref, want)
				}
				if tab.count() != len(model) {
					t.Fatalf("count() = %d, want %d", tab.count(), len(model))
				}
			},
		})
	})
}

// A place whose generations are used up is not used again.
func TestGenerationsRunOut(t *testing.T) {
	var tab table
	h := tab.put(object{ref: 1})
	tab.slots[0].gen = math.MaxUint32 - 1
	_, ok := tab.get(h)
	require.False(t, ok)
	tab.drop(0)
	last := tab.put(object{ref: 2})
	require.Equal(t, uint64(math.MaxUint32)<<32|1, last)
	_, ok = tab.claim(last)
	require.True(t, ok)
	tab.settle(last, true)
	require.Equal(t, uint64(1)<<32|2, tab.put(object{ref: 3}), "another place")
}

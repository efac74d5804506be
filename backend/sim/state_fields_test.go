package sim_test

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend/sim"
)

// notWritten are the fields that AppendState does not look at, and why a device
// is the same without.
var notWritten = map[string]string{
	"cfg":     "configuration: its hash is written",
	"policy":  "not part of the value",
	"trace":   "not part of the value",
	"scratch": "not part of the value",

	"allocated":         "the sizes of what is alive, summed",
	"mems.off":          "the regions are side by side",
	"entries.class":     "that of the kernel",
	"entries.stream":    "the stream that it is written with",
	"entries.pos":       "positions count up to the stream's enqueued",
	"entries.src.Size":  "that of the destination",
	"streams.last":      "found by following the entries",
	"streams.executed":  "the position before the first entry",
	"ring.due":          "it has come",
	"calls.op.Data":     "it is in data",
	"calls.answer.Data": "a view; a call that was begun has none",
}

// leaves calls see for each plain value in v, which must be addressable, and
// for each field that holds none, with a zero Value.
func leaves(v reflect.Value, path string, see func(path string, leaf reflect.Value)) {
	if _, listed := notWritten[path]; listed && !v.CanInt() && !v.CanUint() {
		see(path, reflect.Value{})
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem() // unexported fields, too
			name := v.Type().Field(i).Name
			if path != "" && !v.Type().Field(i).Anonymous {
				name = path + "." + name
			} else if path != "" {
				name = path
			}
			leaves(f, name, see)
		}
	case reflect.Slice, reflect.Array:
		if v.Len() == 0 {
			see(path, reflect.Value{})
		}
		for i := range v.Len() {
			leaves(v.Index(i), path, see)
		}
	default:
		see(path, v)
	}
}

// change makes a plain value another one.
func change(t *testing.T, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.CanInt():
		v.SetInt(v.Int() ^ 1)
	case v.CanUint():
		v.SetUint(v.Uint() ^ 1)
	default:
		t.Fatalf("a field of type %v: say here how it changes", v.Type())
	}
}

// bytesOrPanic is AppendState; a broken queue may make it panic, which shows too.
func bytesOrPanic(d *sim.Device) (b []byte) {
	defer func() {
		if recover() != nil {
			b = nil
		}
	}()
	return d.AppendState(nil)
}

// Every field of a device is written, down to the last: changing it changes the
// bytes. What is not written is listed above.
func TestAppendStateWritesEveryField(t *testing.T) {
	d := loaded(t)
	d.AppendCanonical(nil, sim.Naming{})
	good := d.AppendState(nil)
	written := map[string]bool{}
	leaves(reflect.ValueOf(d).Elem(), "", func(path string, leaf reflect.Value) {
		if written[path] {
			return
		}
		written[path] = false
		if !leaf.IsValid() {
			return
		}
		old := reflect.New(leaf.Type()).Elem()
		old.Set(leaf)
		change(t, leaf)
		written[path] = string(good) != string(bytesOrPanic(d))
		leaf.Set(old)
	})
	require.Equal(t, good, d.AppendState(nil))
	for path, ok := range written {
		_, listed := notWritten[path]
		assert.True(t, ok != listed, "%s: changing it shows in the bytes: %v; it is listed: %v", path, ok, listed)
	}
	for path := range notWritten {
		assert.Contains(t, written, path, "there is no such field")
	}
}

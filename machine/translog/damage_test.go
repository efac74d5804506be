package translog_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// boundaries returns where lines or frames end.
func boundaries(b []byte, f translog.Format) map[int]bool {
	out := map[int]bool{}
	if f == translog.JSONLines {
		for i, c := range b {
			if c == '\n' {
				out[i+1] = true
			}
		}
		return out
	}
	for at := 12; at < len(b); {
		out[at] = true
		at += 4 + int(binary.LittleEndian.Uint32(b[at:])&0xffffff) + 4
	}
	out[len(b)] = true
	return out
}

// same compares entries but for their places, fast.
func same(a, b *translog.Entry) bool {
	return a.Kind == b.Kind && a.World == b.World && a.Record == b.Record && a.Site == b.Site && a.Repeat == b.Repeat && a.Gap == b.Gap &&
		a.End == b.End && a.Opened.Name == b.Opened.Name && a.Opened.Queue == b.Opened.Queue && maps.Equal(a.Opened.Pools, b.Opened.Pools)
}

// small is a log with every kind of entry that is short enough to be damaged
// at every byte.
func small(t *testing.T, f translog.Format) []byte {
	t.Helper()
	rules := machine.MustCompile(toggle())
	var b bytes.Buffer
	w, err := translog.NewWriter(&b, rules, translog.Options{Format: f})
	require.NoError(t, err)
	in, err := rules.NewInstance(machine.InstanceConfig{Performer: nothing, Recorder: w.World("a", nil, 0), Sites: true})
	require.NoError(t, err)
	for _, e := range "10110110000" {
		if _, err := in.Fire(bg, machine.EventID('1'-e)); err != nil {
			require.ErrorIs(t, err, machine.ErrRefused)
		}
	}
	require.NoError(t, w.Close())
	log := b.String()
	if f == translog.JSONLines {
		// A writer makes no gap unless it must.
		end := strings.LastIndex(log[:len(log)-1], "\n") + 1
		return []byte(log[:end] + line(`{"kind":"gap","world":0,"seq":100,"count":3`) + log[end:])
	}
	end := len(log) - len(frame(`-{"kind":"end","records":15}`))
	return []byte(log[:end] + frame("\x00"+`{"kind":"gap","world":0,"seq":100,"count":3}`) + log[end:])
}

func TestLogCutAtEveryByte(t *testing.T) {
	for _, f := range formats {
		whole := small(t, f)
		all, err := readAll(whole)
		require.NoError(t, err)
		r, err := translog.NewReader(bytes.NewReader(whole))
		require.NoError(t, err)
		header := int(r.Place().Offset)
		var after []int // where the reader is once it has delivered each entry
		for range all {
			require.NoError(t, r.Next(&translog.Entry{}))
			after = append(after, int(r.Place().Offset))
		}
		ends := boundaries(whole, f)
		for cut := range whole {
			// A line that lacks nothing but its end is whole.
			upTo := cut
			if f == translog.JSONLines && ends[cut+1] {
				upTo = cut + 1
			}
			r, err := translog.NewReader(bytes.NewReader(whole[:cut]))
			if cut == 0 {
				require.ErrorIs(t, err, translog.ErrEmpty)
				continue
			}
			var torn *translog.TornError
			if upTo < header {
				require.ErrorAs(t, err, &torn, "%v cut at %d", f, cut)
				continue
			}
			require.NoError(t, err, "%v cut at %d", f, cut)
			got := 0
			var e translog.Entry
			for err = r.Next(&e); err == nil; err = r.Next(&e) {
				require.True(t, same(&all[got], &e))
				got++
			}
			whole := 0
			for _, end := range after {
				if end <= upTo {
					whole++
				}
			}
			require.Equal(t, whole, got, "%v cut at %d: everything before it is delivered", f, cut)
			require.Equal(t, got == len(all), r.Closed(), "a log that was cut was not closed")
			require.Equal(t, err, r.Next(&e), "an error stays")
			if ends[upTo] {
				require.Equal(t, io.EOF, err, "%v cut at %d", f, cut)
				continue
			}
			require.ErrorAs(t, err, &torn, "%v cut at %d", f, cut)
			require.False(t, torn.Zeros)
			require.Equal(t, int64(cut), torn.Place.Offset+torn.Tail)
			require.True(t, ends[int(torn.Place.Offset)])
		}
	}
}

// Whatever byte is damaged, the reader says so, and delivers nothing but what
// was written.
func TestEveryDamagedByteIsFound(t *testing.T) {
	for _, f := range formats {
		whole := small(t, f)
		all, err := readAll(whole)
		require.NoError(t, err)
		for i := range whole {
			for _, flip := range []byte{1, 0x20 << (2 * (1 - f))} { // the case of a letter, the top bit of a byte
				b := bytes.Clone(whole)
				b[i] ^= flip
				got, err := readAll(b)
				require.Error(t, err, "%v: byte %d ^ %#x", f, i, flip)
				require.LessOrEqual(t, len(got), len(all))
				for j := range got {
					require.True(t, same(&all[j], &got[j]), "%v: byte %d", f, i)
				}
			}
		}
	}
}

func TestTailOfZerosIsTorn(t *testing.T) {
	for _, f := range formats {
		whole := record(t, translog.Options{Format: f})
		all, err := readAll(whole)
		require.NoError(t, err)
		for _, n := range []int{1, 3, 4, 7, 100, 3 << 20} {
			if f == translog.JSONLines && n > 1<<20 {
				continue // no line is that long
			}
			got, err := readAll(append(bytes.Clone(whole), make([]byte, n)...))
			var torn *translog.TornError
			require.ErrorAs(t, err, &torn, "%v: %d zeros", f, n)
			assert.True(t, torn.Zeros)
			assert.Equal(t, int64(n), torn.Tail)
			assert.Equal(t, int64(len(whole)), torn.Place.Offset)
			assert.Equal(t, all, got)
			assert.Contains(t, err.Error(), "zeros")
		}
		zeros := append(append(bytes.Clone(whole), make([]byte, 100)...), "more"...)
		_, err = readAll(zeros)
		if f == translog.Binary {
			var corrupt *translog.CorruptError
			require.ErrorAs(t, err, &corrupt)
			assert.ErrorContains(t, err, "zeros in the middle")
		}
	}
}

func TestErrorsSayTheirPlace(t *testing.T) {
	for _, f := range formats {
		whole := record(t, translog.Options{Format: f})
		_, err := readAll(whole[:len(whole)-3])
		var torn *translog.TornError
		require.ErrorAs(t, err, &torn)
		assert.Equal(t, 1, torn.Place.World)
		assert.EqualValues(t, 2, torn.Place.Seq)
		assert.Equal(t, f == translog.JSONLines, torn.Place.Line > 0)
		assert.Contains(t, err.Error(), fmt.Sprintf("byte %d, after record 2 of world 1", torn.Place.Offset))
	}
}

func TestReaderErrorKeepsItsCause(t *testing.T) {
	cause := errors.New("cable pulled")
	for _, f := range formats {
		whole := record(t, translog.Options{Format: f})
		for _, at := range []int{0, 5, 40, len(whole) - 3} {
			r, err := translog.NewReader(io.MultiReader(bytes.NewReader(whole[:at]), iotest.ErrReader(cause)))
			for err == nil {
				err = r.Next(&translog.Entry{})
			}
			assert.ErrorIs(t, err, cause, "%v at %d", f, at)
			assert.Contains(t, err.Error(), "byte ")
		}
	}
}

// A reader must not depend on how much it is given at a time.
func TestReaderTakesSmallBites(t *testing.T) {
	for _, f := range formats {
		whole := record(t, translog.Options{Format: f})
		want, err := readAll(whole)
		require.NoError(t, err)
		r, err := translog.NewReader(iotest.OneByteReader(bytes.NewReader(whole)))
		require.NoError(t, err)
		for _, x := range want {
			var e translog.Entry
			require.NoError(t, r.Next(&e))
			e.Place = translog.Place{}
			require.Equal(t, x, e)
		}
		require.Equal(t, io.EOF, r.Next(&translog.Entry{}))
		require.True(t, r.Closed())
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	for _, s := range []string{"hello, world, this is no log", "\x7fELF\x02\x01\x01", "\x00\x00\x00\x00", "[1,2]\n", "{\"a\":1}\n", "\x8aRFX\r\n\x1a\n....", "\x8aRFL\n\x1a\n....", " {\"runfence\"", "{}", "\n"} {
		_, err := readAll([]byte(s))
		assert.ErrorIs(t, err, translog.ErrNotALog, "%q", s)
		assert.ErrorContains(t, err, "begins with", "%q", s)
	}
	_, err := readAll(nil)
	assert.ErrorIs(t, err, translog.ErrEmpty)
}

func TestOtherSchemasAreRefusedByName(t *testing.T) {
	bin := record(t, translog.Options{})
	binary.LittleEndian.PutUint32(bin[8:], 7)
	text := record(t, translog.Options{Format: translog.JSONLines})
	for _, b := range [][]byte{bin, []byte(strings.Replace(string(text), `"schema":1`, `"schema":7`, 1))} {
		_, err := readAll(b)
		var other *translog.SchemaError
		require.ErrorAs(t, err, &other)
		assert.EqualValues(t, 7, other.Version)
		assert.EqualError(t, err, "log schema version 7: this program reads version 1")
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line makes a line with a checksum of an object that lacks its last brace.
func line(object string) string {
	return fmt.Sprintf("%s,\"crc\":\"%08x\"}\n", object, crc32.Checksum([]byte(object), castagnoli))
}

// frame makes a frame with a checksum.
func frame(payload string) string {
	n := uint32(len(payload))
	b := binary.LittleEndian.AppendUint32(nil, n|(n^n>>8^n>>16^0xa5)&0xff<<24)
	b = append(b, payload...)
	return string(binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)))
}

// headers returns the header of the rig in both formats, and one world opened.
func headers(t testing.TB) (text, bin string) {
	t.Helper()
	var out [2]string
	for i, f := range []translog.Format{translog.JSONLines, translog.Binary} {
		var b bytes.Buffer
		w, err := translog.NewWriter(&b, rigRules(t), translog.Options{Format: f})
		require.NoError(t, err)
		w.World("lane", pools, 0)
		require.NoError(t, w.Sync())
		out[i] = b.String()
	}
	return out[0], out[1]
}

// hostile are logs that no writer makes.
func hostile(t testing.TB) map[string]string {
	text, bin := headers(t)
	rec := `{"kind":"step","world":0,"seq":1,"ref":"log","event":"mint","from":"on","row":"mint"`
	deep := strings.Repeat("[", 60000)
	first := func(s string) string { return s[:strings.IndexByte(s, '\n')+1] }
	return map[string]string{
		"line of 10 MB":            text + `{"kind":"` + strings.Repeat("x", 10<<20) + "\"}\n",
		"line of 10 MB unended":    text + strings.Repeat("{", 10<<20),
		"10 MB without a newline":  strings.Repeat(`{"runfence":"transition log",`, 400000),
		"line over the bound":      text + line(rec+`,"site":"`+strings.Repeat("x", 70000)+`"`),
		"first line of 10 MB":      line(`{"runfence":"transition log","schema":1,"calls":["` + strings.Repeat("x", 10<<20) + `"]`),
		"deep nesting":             text + line(`{"kind":"step","args":`+deep),
		"deep nesting closed":      text + line(`{"kind":"step","args":`+strings.Repeat("[", 400)+strings.Repeat("]", 400)),
		"deep nesting in header":   line(`{"runfence":"transition log","schema":1,"calls":` + strings.Repeat("[", 200000)),
		"deep nesting in world":    text + line(`{"kind":"world","world":1,"name":`+deep),
		"NULs":                     text + line(rec+",\x00\x00"),
		"NUL line":                 text + strings.Repeat("\x00", 1000) + "\n",
		"empty line":               text + "\n" + line(rec),
		"blank and checksum only":  text + line(""),
		"not an object":            text + line(`[1`),
		"two values":               text + line(`{} {"a":1`),
		"many values":              text + line(rec+`,"args":[`+strings.Repeat("1,", 20000)+"1]"),
		"many members":             text + line(rec+strings.Repeat(`,"x":1`, 9000)),
		"unknown member":           text + line(rec+`,"colour":"red"`),
		"member twice":             text + line(rec+`,"row":"mint"`),
		"member out of order":      text + line(`{"kind":"step","seq":1,"world":0,"ref":"log"`),
		"member of another kind":   text + line(`{"kind":"repeat","world":0,"seq":1,"row":"mint","length":1,"count":1`),
		"no kind":                  text + line(`{"world":0`),
		"unknown kind":             text + line(`{"kind":"stop","world":0`),
		"kind is a number":         text + line(`{"kind":5`),
		"no ref":                   text + line(`{"kind":"step","world":0,"seq":1`),
		"negative sequence":        text + line(`{"kind":"step","world":0,"seq":-1,"ref":"log"`),
		"sequence too large":       text + line(`{"kind":"step","world":0,"seq":99999999999999999999,"ref":"log"`),
		"sequence with fraction":   text + line(`{"kind":"step","world":0,"seq":1.5,"ref":"log"`),
		"NaN":                      text + line(`{"kind":"step","world":0,"seq":nan,"ref":"log"`),
		"world not opened":         text + line(strings.Replace(rec, `"world":0`, `"world":9`, 1)),
		"world opened twice":       text + line(`{"kind":"world","world":0,"name":"x"`),
		"world out of turn":        text + line(`{"kind":"world","world":2147483648,"name":"x"`),
		"world of wrong type":      text + line(`{"kind":"world","world":1,"name":5`),
		"world with more":          text + line(`{"kind":"world","world":1,"name":"x","colour":1`),
		"gap of nothing":           text + line(`{"kind":"gap","world":0,"seq":1,"count":0`),
		"repeat without end":       text + line(`{"kind":"repeat","world":0,"seq":1,"length":1,"count":1000000000`),
		"repeat of nothing":        text + line(`{"kind":"repeat","world":0,"seq":1,"length":0,"count":1`),
		"entry after the end":      text + line(`{"kind":"end","records":0`) + line(rec),
		"bad ref":                  text + line(strings.Replace(rec, `"log"`, `"run[0"`, 1)),
		"bad slot":                 text + line(strings.Replace(rec, `"log"`, `"run[70000]"`, 1)),
		"bad generation":           text + line(strings.Replace(rec, `"log"`, `"run[0]~0"`, 1)),
		"ref with a tail":          text + line(strings.Replace(rec, `"log"`, `"run[0]~1x"`, 1)),
		"bad machine number":       text + line(strings.Replace(rec, `"log"`, `"#0[0]"`, 1)),
		"truth where an id is":     text + line(`{"kind":"step","world":0,"seq":1,"ref":"log","event":"note","args":{"epoch":true,"code":0}`),
		"too few arguments":        text + line(`{"kind":"step","world":0,"seq":1,"ref":"log","event":"note","args":{"epoch":1}`),
		"text for arguments":       text + line(`{"kind":"step","world":0,"seq":1,"ref":"log","event":"note","args":"none"`),
		"wrong checksum":           text + strings.Replace(line(rec), "crc\":\"", "crc\":\"0", 1),
		"no checksum":              text + rec + "}\n",
		"header without machines":  line(`{"runfence":"transition log","machines":0,"schema":1,"rules":"","calls":[],"reasons":[],"sorts":[]`),
		"header of a million":      line(`{"runfence":"transition log","machines":1000000,"schema":1,"rules":"","calls":[],"reasons":[],"sorts":[]`),
		"header cut short":         first(text),
		"header with a record":     first(text) + line(rec),
		"header of twice the same": line(`{"runfence":"transition log","machines":1,"schema":1,"rules":"","calls":["a","a"],"reasons":[],"sorts":[]`) + strings.Split(text, "\n")[1] + "\n",
		"machine without states":   line(`{"runfence":"transition log","machines":1,"schema":1,"rules":"","calls":[],"reasons":[],"sorts":[]`) + line(`{"kind":"machine","machine":"x","hash":"","states":[],"events":[],"rows":[]`),
		"rows over the bound":      line(`{"runfence":"transition log","machines":1,"schema":1,"rules":""`) + line(`{"kind":"machine","machine":"x","hash":"","states":["a"],"events":[{"event":"e"}],"rows":[`+strings.Repeat("{},", 300000)+`{}]`),
		"header over the bound":    line(`{"runfence":"transition log","machines":60,"schema":1,"rules":""`) + strings.Repeat(line(`{"kind":"machine","machine":"x","hash":"`+strings.Repeat("x", 500000)+`","states":["a"],"events":[{"event":"e"}],"rows":[]`), 60),
		"row of no state":          line(`{"runfence":"transition log","machines":1,"schema":1,"rules":"","calls":[],"reasons":[],"sorts":[]`) + line(`{"kind":"machine","machine":"x","hash":"","states":["a"],"events":[{"event":"e"}],"rows":[{"row":"r","from":1,"event":0}]`),
		"row of no type":           line(`{"runfence":"transition log","machines":1,"schema":1,"rules":"","calls":[],"reasons":[],"sorts":[]`) + line(`{"kind":"machine","machine":"x","hash":"","states":["a"],"events":[{"event":"e"}],"rows":[{"row":"r","from":0,"event":0,"call":["complex"]}]`),
		"rows of one name":         line(`{"runfence":"transition log","machines":1,"schema":1,"rules":"","calls":[],"reasons":[],"sorts":[]`) + line(`{"kind":"machine","machine":"x","hash":"","states":["a"],"events":[{"event":"e"}],"rows":[{"row":"r","from":0,"event":0},{"row":"r","from":0,"event":0}]`),

		"huge length, sound":         bin + "\xff\xff\xff\x5a" + "x",
		"huge length, no check":      bin + "\xff\xff\xff\xff" + "x",
		"frame over the bound":       bin + frame("\x00"+strings.Repeat("x", 70000)),
		"frame of nothing":           bin + frame(""),
		"frame of unknown tag":       bin + frame("\x09abc"),
		"text that is none":          bin + frame("\x00hello"),
		"record cut short":           bin + frame("\x01\x00\x01"),
		"record of tag only":         bin + frame("\x01"),
		"record with more":           bin + frame("\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00zz"),
		"kind out of range":          bin + frame("\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x0f\x00\x00\x02\x00\x00\x00"),
		"unknown parts":              bin + frame("\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\x02\x00\x00\x00"),
		"many counts":                bin + frame("\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40\x00\x02\x00\x00\x00\xff\xff"),
		"number too long":            bin + frame("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		"site unnamed":               bin + frame("\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x02\x00\x00\x00\x05"),
		"site too long":              bin + frame("\x03"+strings.Repeat("x", 2000)),
		"site empty":                 bin + frame("\x03"),
		"site not UTF-8":             bin + frame("\x03\xff"),
		"sites without end":          bin + strings.Repeat(frame("\x03x"), 10000),
		"repeat, binary":             bin + frame("\x02\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\x7f"),
		"first frame no header":      bin[:12] + frame("\x01abc"),
		"second frame no text":       bin[:12+len(frame("\x00"+strings.TrimSuffix(first(text), "\n")))-18+1] + frame("\x01abc"),
		"first frame over the bound": bin[:12] + frame("\x00"+strings.Repeat("x", 2<<20)),
	}
}

func TestHostileLogs(t *testing.T) {
	for name, s := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			es, err := readAll([]byte(s))
			runtime.ReadMemStats(&after)
			var corrupt *translog.CorruptError
			var torn *translog.TornError
			var unknown *translog.NameError
			if !errors.As(err, &corrupt) && !errors.As(err, &torn) && !errors.As(err, &unknown) {
				t.Fatalf("want a corrupt, a torn or a name error, got %v after %d entries", err, len(es))
			}
			for _, long := range []string{"10 MB", "over the bound", "huge length, sound"} {
				if strings.Contains(name, long) {
					assert.ErrorIs(t, err, translog.ErrTooLong)
				}
			}
			assert.Contains(t, err.Error(), "byte ", "an error has its place")
			assert.Less(t, len(err.Error()), 1000, "an error does not repeat what it read")
			// What was asked for, most of it given back meanwhile.
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), "memory is bounded")
		})
	}
}

func TestUnknownNamesAreNamed(t *testing.T) {
	text, _ := headers(t)
	rec := `{"kind":"step","world":0,"seq":7,"ref":"run[0]","event":"launch","from":"armed","row":"launch"`
	for _, c := range []struct{ old, new, what, hint string }{
		{`"launch","from"`, `"lunch","from"`, "event", `unknown event "lunch": did you mean "launch"?`},
		{`"armed"`, `"alarmed"`, "state", `unknown state "alarmed": did you mean "armed"?`},
		{`"run[0]"`, `"ruin[0]"`, "machine", `unknown machine "ruin": did you mean "run"?`},
		{`"row":"launch"`, `"row":"lanuch"`, "row", `unknown row "lanuch": did you mean "launch"?`},
		{`"row":"launch"`, `"row":"poll"`, "row", `no row "poll" from state "armed"`},
		{`"row":"launch"`, `"row":"launch","call":"Submit2"`, "call", `unknown call "Submit2": did you mean "Submit"?`},
		{`"row":"launch"`, `"row":"launch","reason":"not attemptd"`, "reason", `unknown reason "not attemptd": did you mean "not attempted"?`},
		{`"row":"launch"`, `"row":"launch","outcome":"okay"`, "outcome", `unknown outcome "okay": did you mean "ok"?`},
		{`"row":"launch"`, `"row":"launch","identity":{"epoch":1,"on":"none","mode":"easy"}`, "name of enum eager|lazy", `unknown name of enum eager|lazy "easy"`},
		{`"row":"launch"`, `"row":"launch","identity":{"epoch":1,"om":"none","mode":"lazy"}`, "identity", `"om" where "on" comes`},
		{`"event":"launch"`, `"via":"hots","event":"launch"`, "via", `unknown via "hots": did you mean "host"?`},
	} {
		_, err := readAll([]byte(text + line(strings.Replace(rec, c.old, c.new, 1))))
		var unknown *translog.NameError
		if assert.ErrorAs(t, err, &unknown, c.new) {
			assert.Equal(t, c.what, unknown.What)
			assert.Contains(t, err.Error(), c.hint)
			assert.Contains(t, err.Error(), "line 6, byte ")
			assert.Contains(t, err.Error(), "record 7 of world 0")
			assert.EqualValues(t, 7, unknown.Seq)
		}
	}
}

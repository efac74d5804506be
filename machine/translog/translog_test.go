package translog_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

var formats = []translog.Format{translog.Binary, translog.JSONLines}

func TestBothEncodingsSayTheSame(t *testing.T) {
	for _, exact := range []bool{false, true} {
		bin := record(t, translog.Options{Exact: exact})
		text := record(t, translog.Options{Exact: exact, Format: translog.JSONLines})
		want, err := readAll(bin)
		require.NoError(t, err)
		got, err := readAll(text)
		require.NoError(t, err)
		assert.Empty(t, cmp.Diff(want, got))

		assert.Equal(t, string(text), string(convert(t, bin, translog.JSONLines)), "binary to JSON")
		assert.Equal(t, bin, convert(t, text, translog.Binary), "JSON to binary")
		assert.Equal(t, bin, convert(t, bin, translog.Binary))
	}
}

// The session of the rig must hold one of everything, or the other tests that
// use it prove little.
func TestSessionHasEverything(t *testing.T) {
	es, err := readAll(record(t, translog.Options{}))
	require.NoError(t, err)
	kinds, vias, refusals := map[machine.RecordKind]int{}, map[machine.Via]int{}, map[machine.RefusalKind]int{}
	entries := map[translog.EntryKind]int{}
	views, calls, during := 0, 0, 0
	for _, e := range es {
		entries[e.Kind]++
		if e.Kind != translog.RecordEntry {
			continue
		}
		r := e.Record
		kinds[r.Kind]++
		vias[r.Via]++
		refusals[r.Refusal]++
		views += int(r.NViews)
		calls += int(r.NCall)
		if r.Kind == machine.Stepped && r.From == r.To {
			during++
		}
	}
	for _, k := range []machine.RecordKind{machine.Stepped, machine.Issued, machine.Settled, machine.Rejected, machine.Dropped, machine.Reserved} {
		assert.NotZero(t, kinds[k], k)
	}
	for _, v := range []machine.Via{machine.ViaHost, machine.ViaQueue, machine.ViaJoint} {
		assert.NotZero(t, vias[v], v)
	}
	for _, k := range []machine.RefusalKind{machine.NoRow, machine.ByRow, machine.ByJoint, machine.StaleRef, machine.BadArgument, machine.BadRef} {
		assert.NotZero(t, refusals[k], k)
	}
	for _, k := range []translog.EntryKind{translog.WorldEntry, translog.RecordEntry, translog.RepeatEntry, translog.EndEntry} {
		assert.NotZero(t, entries[k], k)
	}
	assert.NotZero(t, views)
	assert.NotZero(t, calls)
	assert.NotZero(t, during)
}

func TestHeaderNamesEverything(t *testing.T) {
	rules := rigRules(t)
	for _, f := range formats {
		r, err := translog.NewReader(bytes.NewReader(record(t, translog.Options{Format: f})))
		require.NoError(t, err)
		assert.Equal(t, f, r.Format())
		h := r.Header()
		assert.Equal(t, translog.Schema, h.Schema)
		assert.Equal(t, rules.Hash().String(), h.Rules)
		assert.Equal(t, rules.Calls(), h.Calls)
		assert.Equal(t, rules.Reasons(), h.Reasons)
		assert.Equal(t, rules.Sorts(), h.Sorts)
		require.Len(t, h.Machines, rules.NumMachines())
		for i, m := range h.Machines {
			of := rules.At(machine.MachineID(i))
			assert.Equal(t, of.Name(), m.Name)
			assert.Equal(t, of.Hash().String(), m.Hash)
			assert.Equal(t, of.Definition().Pool, m.Pool)
			assert.Len(t, m.States, of.NumStates())
			assert.Len(t, m.Events, of.NumEvents())
			assert.Len(t, m.Rows, of.NumRows())
		}
		run := h.Machines[0]
		assert.Equal(t, translog.EventTable{Name: "launch"}, run.Events[1])
		assert.Equal(t, translog.Field{Name: "on", Type: "ref fence"}, run.Events[0].Args[1])
		assert.Equal(t, []translog.Field{{Name: "epoch", Type: "id run_epoch"}, {Name: "on", Type: "ref fence"}, {Name: "mode", Type: "enum eager|lazy"}}, run.Identity)
		assert.Equal(t, translog.RowTable{
			ID: "launch", From: 1, Event: 1, Views: []translog.Field{{Name: "held", Type: "int 2"}, {Name: "busy", Type: "bool"}},
			Call: []string{"id run_epoch", "ref fence", "enum eager|lazy", "state of run", "int 1000000", "code"},
		}, run.Rows[2])
		assert.Equal(t, "poll", run.Rows[5].During)
	}
}

// anyRecord draws records that hold anything their fields can, also what no
// world would record.
func anyRecord(rules *machine.Rules) *rapid.Generator[machine.Record] {
	word := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 5), rapid.Just(uint64(math.MaxUint64)), rapid.Uint64Range(math.MaxInt32-1, math.MaxUint32+2),
		rapid.Just(machine.Ref{Machine: 1, Slot: 1}.Pack()), rapid.Just(machine.Ref{Machine: 2, Gen: 7}.Pack()))
	ref := rapid.Custom(func(t *rapid.T) machine.Ref {
		return machine.Ref{
			Machine: machine.MachineID(rapid.OneOf(rapid.Uint8Range(0, 3), rapid.Uint8()).Draw(t, "machine")),
			Slot:    rapid.OneOf(rapid.Uint16Range(0, 2), rapid.Uint16()).Draw(t, "slot"),
			Gen:     rapid.OneOf(rapid.Uint32Range(0, 1), rapid.Uint32()).Draw(t, "gen"),
		}
	})
	id := rapid.OneOf(rapid.Uint16Range(0, 5), rapid.Uint16())
	return rapid.Custom(func(t *rapid.T) machine.Record {
		var r machine.Record
		r.Kind = machine.RecordKind(rapid.IntRange(0, machine.NumRecordKinds-1).Draw(t, "kind"))
		r.Via = machine.Via(rapid.IntRange(0, machine.NumVia-1).Draw(t, "via"))
		r.Seq, r.Parent = word.Draw(t, "seq"), word.Draw(t, "parent")
		r.Time = rapid.Int64().Draw(t, "time")
		r.Ref = ref.Draw(t, "ref")
		r.Root = r.Ref
		if rapid.Bool().Draw(t, "other root") {
			r.Root = ref.Draw(t, "root")
		}
		r.Event, r.From = machine.EventID(id.Draw(t, "event")), machine.StateID(id.Draw(t, "from"))
		r.To = r.From
		if rapid.Bool().Draw(t, "moves") {
			r.To = machine.StateID(id.Draw(t, "to"))
		}
		r.Row, r.Call, r.Reason = machine.NoRowID, machine.NoCall, machine.NoReasonID
		switch rapid.IntRange(0, 2).Draw(t, "row kind") {
		case 1:
			r.Row = machine.RowID(id.Draw(t, "row"))
		case 2: // a row that could be
			r.Ref.Machine = 0
			m := rules.At(0)
			r.Row = machine.RowID(rapid.IntRange(0, m.NumRows()-1).Draw(t, "row"))
			r.From, _ = m.RowFrom(r.Row)
			r.Event = m.RowEvent(r.Row)
			r.NViews = uint8(len(m.RowViews(r.Row)))
			r.NCall = uint8(len(m.RowCallTypes(r.Row)))
			r.NArgs = uint8(len(m.EventArgs(r.Event)))
			r.NIdentity = uint8(len(m.IdentityFacts()))
		}
		if rapid.Bool().Draw(t, "odd counts") {
			r.NArgs, r.NViews = uint8(rapid.IntRange(0, machine.MaxArgs).Draw(t, "nargs")), uint8(rapid.IntRange(0, machine.MaxViews).Draw(t, "nviews"))
			r.NCall, r.NIdentity = uint8(rapid.IntRange(0, machine.MaxArgs).Draw(t, "ncall")), uint8(rapid.IntRange(0, machine.MaxIdentity).Draw(t, "nidentity"))
		}
		for _, vs := range [][]uint64{r.Args[:r.NArgs], r.Views[:r.NViews], r.CallArgs[:r.NCall], r.Identity[:r.NIdentity]} {
			for i := range vs {
				vs[i] = word.Draw(t, "value")
			}
		}
		r.Target = rapid.Uint8().Draw(t, "target")
		if rapid.Bool().Draw(t, "call") {
			r.Call = machine.CallID(id.Draw(t, "call"))
		}
		if rapid.Bool().Draw(t, "result") {
			r.Result = machine.Result{
				Outcome:  machine.Outcome(rapid.IntRange(0, machine.NumOutcomes-1).Draw(t, "outcome")),
				Accepted: rapid.Bool().Draw(t, "accepted"),
				Codes:    machine.Codes{Code: rapid.Int32().Draw(t, "code"), Last: rapid.Int32().Draw(t, "last")},
				Value:    word.Draw(t, "value"),
			}
		}
		r.Refusal = machine.RefusalKind(rapid.IntRange(0, machine.NumRefusalKinds-1).Draw(t, "refusal"))
		if rapid.Bool().Draw(t, "reason") {
			r.Reason = id.Draw(t, "reason")
		}
		if rapid.Bool().Draw(t, "by") {
			r.By, r.ByEvent = ref.Draw(t, "by"), machine.EventID(id.Draw(t, "by event"))
		}
		return r
	})
}

func TestAnyEntrySurvivesBothEncodings(t *testing.T) {
	rules := rigRules(t)
	h, err := translog.HeaderOf(rules)
	require.NoError(t, err)
	records := rapid.SliceOfN(anyRecord(rules), 1, 5)
	text := rapid.StringN(1, 50, 200)
	rapid.Check(t, func(t *rapid.T) {
		es := []translog.Entry{{Kind: translog.WorldEntry, Opened: translog.World{
			Name: text.Draw(t, "name"), Pools: map[string]int{"slot": rapid.Int().Draw(t, "size"), text.Draw(t, "pool"): 1}, Queue: rapid.Int().Draw(t, "queue"),
		}}}
		for _, r := range records.Draw(t, "records") {
			e := translog.Entry{Kind: translog.RecordEntry, Record: r}
			if rapid.Bool().Draw(t, "sited") {
				e.Site = rapid.OneOf(rapid.Just("a.go:1"), text).Draw(t, "site")
			}
			es = append(es, e)
		}
		es = append(es,
			translog.Entry{Kind: translog.RepeatEntry, Repeat: translog.Repeat{
				First: rapid.Uint64().Draw(t, "first"), Length: rapid.IntRange(1, translog.MaxRepeatLength).Draw(t, "length"),
				Count: rapid.IntRange(1, translog.MaxRepeatCount).Draw(t, "count"), Time: rapid.Int64().Draw(t, "time"),
			}},
			translog.Entry{Kind: translog.GapEntry, Gap: translog.Gap{First: rapid.Uint64().Draw(t, "first"), Count: rapid.Uint64Min(1).Draw(t, "count")}},
			translog.Entry{Kind: translog.EndEntry, End: translog.End{Records: rapid.Uint64().Draw(t, "n"), Dropped: rapid.Uint64().Draw(t, "d")}},
		)
		logs := map[translog.Format][]byte{}
		for _, f := range formats {
			var b bytes.Buffer
			enc, err := translog.NewEncoder(&b, f, h)
			require.NoError(t, err)
			for i := range es {
				require.NoError(t, enc.Encode(&es[i]))
			}
			require.NoError(t, enc.Flush())
			logs[f] = b.Bytes()
			got, err := readAll(b.Bytes())
			require.NoError(t, err)
			if d := cmp.Diff(es, got); d != "" {
				t.Fatalf("%v: %s\n%s", f, d, b.Bytes())
			}
		}
		for _, from := range formats {
			for _, to := range formats {
				var b bytes.Buffer
				require.NoError(t, translog.Convert(&b, to, bytes.NewReader(logs[from])))
				require.Equal(t, logs[to], b.Bytes(), "%v to %v", from, to)
			}
		}
	})
}

// Values are spelled as machine.Type spells them, but for references, which a
// log names and a Type cannot.
func TestValuesAreSpelledAsTypesSpellThem(t *testing.T) {
	rules := rigRules(t)
	run := rules.At(0)
	arm := run.MustEvent("arm")
	values := [][machine.MaxArgs]uint64{
		{0, 0, 0, 0, 0, 0},
		{77, machine.Ref{Machine: 1, Slot: 1, Gen: 4}.Pack(), 1, 1000000, machine.CodeWord(-2147483648), 1},
	}
	for _, args := range values {
		var b bytes.Buffer
		h, err := translog.HeaderOf(rules)
		require.NoError(t, err)
		enc, err := translog.NewEncoder(&b, translog.JSONLines, h)
		require.NoError(t, err)
		require.NoError(t, enc.Encode(&translog.Entry{Kind: translog.RecordEntry, Record: machine.Record{Event: arm, NArgs: 6, Args: args, Row: machine.NoRowID}}))
		require.NoError(t, enc.Flush())
		lines := strings.Split(b.String(), "\n")
		line := lines[len(lines)-2]
		for i, ty := range run.EventArgs(arm) {
			name, want := run.Definition().Events[arm].Args[i].Name, ty.Format(args[i])
			if ty.Kind == machine.RefTo && args[i] != 0 {
				want = rules.RefName(machine.UnpackRef(args[i]))
			}
			if strings.Contains(line, `"`+name+`":"`) {
				want = `"` + want + `"`
			}
			assert.Contains(t, line, `"`+name+`":`+want, "%s", ty)
			if ty.Kind != machine.RefTo {
				v, err := ty.Parse(strings.Trim(want, `"`))
				require.NoError(t, err)
				assert.Equal(t, args[i], v)
			}
		}
	}
}

func TestSitesAreNamed(t *testing.T) {
	rules := machine.MustCompile(toggle())
	for _, f := range formats {
		var b bytes.Buffer
		w, err := translog.NewWriter(&b, rules, translog.Options{Format: f})
		require.NoError(t, err)
		in, err := rules.NewInstance(machine.InstanceConfig{Performer: nothing, Recorder: w.World("w", nil, 0), Sites: true})
		require.NoError(t, err)
		start, stop := in.Machine().MustEvent("start"), in.Machine().MustEvent("stop")
		for range 2 {
			_, err = in.Fire(bg, start)
			require.NoError(t, err)
			_, err = in.Fire(bg, stop)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		es, err := readAll(b.Bytes())
		require.NoError(t, err)
		var sites []string
		for _, e := range es {
			if e.Kind == translog.RecordEntry && e.Record.Kind == machine.Issued {
				sites = append(sites, e.Site)
			}
		}
		require.Len(t, sites, 4)
		assert.Contains(t, sites[0], "translog_test.go:")
		assert.Equal(t, sites[0], sites[2])
		assert.NotEqual(t, sites[0], sites[1])
		other := translog.JSONLines - f + translog.Binary
		assert.Equal(t, b.Bytes(), convert(t, convert(t, b.Bytes(), other), f))
	}
}

package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
)

// diverges replays a log that must diverge, from a file and from a pipe.
func diverges(t *testing.T, log []byte, rules *machine.Rules, o replay.Options) *replay.Divergence {
	t.Helper()
	_, err := replay.Run(pipe{bytes.NewReader(log)}, rules, o)
	var piped *replay.Divergence
	require.ErrorAs(t, err, &piped)
	res, err := run(log, rules, o)
	var d *replay.Divergence
	require.ErrorAs(t, err, &d)
	require.NotNil(t, res)
	assert.Equal(t, piped.Error(), d.Error())
	assert.Equal(t, explain(t, piped), explain(t, d), "what is at hand in a pipe is enough here")
	return d
}

func explain(t *testing.T, d *replay.Divergence) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, d.Explain(&b))
	return b.String()
}

// bySeq finds a record of world 0.
func bySeq(t *testing.T, es []translog.Entry, seq uint64) int {
	t.Helper()
	return at(t, es, 0, func(r *machine.Record) bool { return r.Seq == seq })
}

func change(t *testing.T, log []byte, seq uint64, f func(r *machine.Record)) []byte {
	t.Helper()
	return edit(t, log, func(es []translog.Entry) []translog.Entry {
		f(&es[bySeq(t, es, seq)].Record)
		return es
	})
}

func swap(t *testing.T, log []byte, seq uint64) []byte {
	t.Helper()
	return edit(t, log, func(es []translog.Entry) []translog.Entry {
		i := bySeq(t, es, seq)
		es[i], es[i+1] = es[i+1], es[i]
		return es
	})
}

func remove(t *testing.T, log []byte, seq uint64) []byte {
	t.Helper()
	return edit(t, log, func(es []translog.Entry) []translog.Entry {
		i := bySeq(t, es, seq)
		return append(es[:i:i], es[i+1:]...)
	})
}

func TestEachDivergenceIsFoundAndExplained(t *testing.T) {
	rules := compiled(t, rig()...)
	for _, f := range []translog.Format{translog.Binary, translog.JSONLines} {
		log := record(t, translog.Options{Format: f})
		for _, c := range []struct {
			name   string
			log    []byte
			seq    uint64
			reason string
			// All of these are in the explanation.
			says []string
		}{
			{
				name: "changed state", seq: 5, reason: "to is done in the log, running in the replay",
				log: change(t, log, 5, func(r *machine.Record) { r.To = 3 }),
				says: []string{
					"logged    5 settle job[0] submit(): ready → done",
					"replayed  5 settle job[0] submit(): ready → running",
					"job[0] in ready▸submit epoch=1 gate=gate[0] size=8 mode=lazy fault=0 nudges=0",
					"gate[0] in open held=1 last=1",
					"led there by\n    4 issue job[0] submit()",
				},
			},
			{
				name: "removed record of a step", seq: 3, reason: "record 3 is missing: after 2 comes 4",
				log: remove(t, log, 3),
				says: []string{
					"logged    nothing", "replayed  3 step gate[0] enter(epoch=1)",
					"job[0] in idle epoch=none",
					"led there by\n    2 step job[0] prepare(epoch=1, gate=gate[0]",
				},
			},
			{
				name: "removed input", seq: 23, reason: "record 23 is missing: after 22 comes 24",
				log: remove(t, log, 23), says: []string{"logged    nothing", "replayed  nothing"},
			},
			{
				name: "removed queued record", seq: 18, reason: "record 18 is missing: after 17 comes 19",
				log: remove(t, log, 18), says: []string{"logged    nothing"},
			},
			{
				name: "two records swapped", seq: 16, reason: "records 16 and 17 are swapped",
				log: swap(t, log, 16),
				says: []string{
					"logged    16 step gate[0] leave()", "replayed  nothing",
					"led there by\n    14 issue job[0] poll()", "    15 settle job[0] poll(): running → done",
				},
			},
			{
				name: "two records of a step swapped", seq: 24, reason: "records 24 and 25 are swapped",
				log: swap(t, log, 24), says: []string{"logged    24 step job[1] prepare"},
			},
			{
				name: "foreign identity", seq: 26, reason: "identity.epoch is 99 in the log, 2 in the replay",
				log:  change(t, log, 26, func(r *machine.Record) { r.Identity[0] = 99 }),
				says: []string{"identity.epoch: logged 99, replayed 2", "job[1] in ready epoch=2"},
			},
			{
				name: "foreign identity in an argument", seq: 17, reason: "args.epoch is 99 in the log, 1 in the replay",
				log:  change(t, log, 17, func(r *machine.Record) { r.Args[0] = 99 }),
				says: []string{"desk in on token=none reports=0", "14 issue job[0] poll()", "15 settle job[0] poll()"},
			},
			{
				name: "altered return code", seq: 31, reason: "args.fault is 507018 in the log, 0 in the replay",
				log: change(t, log, 29, func(r *machine.Record) { r.Result.Code = 0 }),
				says: []string{
					"logged    31 step desk report(epoch=2, fault=507018)", "replayed  31 step desk report(epoch=2, fault=0)",
					"led there by\n    28 issue job[1] poll()", "29 settle job[1] poll(): running → lost [poll target 2] answered failed last=507018",
				},
			},
			{
				name: "altered outcome", seq: 29, reason: "target is 2 in the log, 1 in the replay; to is lost in the log, running in the replay; reason is poll failed in the log, nothing in the replay",
				log:  change(t, log, 29, func(r *machine.Record) { r.Result.Outcome = machine.OK }),
				says: []string{"answered ok code=507018", "28 issue job[1] poll()"},
			},
			{
				name: "altered argument", seq: 24, reason: "kind is step in the log, refuse in the replay; row is prepare in the log, prepare-no in the replay",
				log: change(t, log, 24, func(r *machine.Record) { r.Args[2] = 600 }),
			},
			{
				name: "stray joint record", seq: 5, reason: "the step it says it is part of did not take it along",
				log:  change(t, log, 5, func(r *machine.Record) { r.Via = machine.ViaJoint }),
				says: []string{"logged    5 settle job[0]", "replayed  nothing"},
			},
			{
				name: "queued event that nobody emitted", seq: 20, reason: "no event of job[0] waits to be taken",
				log: change(t, log, 20, func(r *machine.Record) { r.Via = machine.ViaQueue }),
			},
			{
				name: "answer for nobody", seq: 20, reason: "job[0]", // has no command in flight
				log:  change(t, log, 20, func(r *machine.Record) { r.Kind, r.Refusal = machine.Settled, 0 }),
				says: []string{"no command in flight"},
			},
			{
				name: "event that has to wait", seq: 47, reason: "job[0]~1 is in state running▸poll: the event has to wait",
				log: change(t, log, 47, func(r *machine.Record) { r.Event = 2 }),
			},
			{
				name: "drop of a living instance", seq: 6, reason: "only an instance in a terminal state can be dropped",
				log: change(t, log, 6, func(r *machine.Record) { r.Kind = machine.Dropped }),
			},
			{
				name: "identities taken already", seq: 19, reason: "the identities were taken already",
				log: change(t, log, 19, func(r *machine.Record) {
					*r = machine.Record{Kind: machine.Reserved, Seq: 19, Event: 1, NArgs: 1, Args: [8]uint64{5}, Row: machine.NoRowID, Call: machine.NoCall, Reason: machine.NoReasonID}
				}),
			},
			{
				name: "record twice", seq: 4, reason: "record 4 comes after record 4",
				log: edit(t, log, func(es []translog.Entry) []translog.Entry {
					i := bySeq(t, es, 4)
					return append(es[:i+1:i+1], es[i:]...)
				}),
			},
			{
				name: "unknown event", seq: 20, reason: "unknown event 78: job has 5",
				log: change(t, log, 20, func(r *machine.Record) { r.Kind, r.Event, r.Refusal = machine.Stepped, 78, 0 }),
			},
			{
				name: "unknown machine", seq: 53, reason: "unknown machine 99: there are 3",
				log: change(t, log, 53, func(r *machine.Record) { r.Kind, r.Refusal = machine.Stepped, 0 }),
			},
			{
				name: "too many repeats", seq: 14, reason: "record 14 comes after record 15",
				log: edit(t, log, func(es []translog.Entry) []translog.Entry {
					for i := range es {
						if es[i].Kind == translog.RepeatEntry {
							es[i].Repeat.Count++
							return es
						}
					}
					return es
				}),
			},
			{
				name: "repeat of another length", seq: 8, reason: "the log repeats 1 records of an operation that has 2",
				log: edit(t, log, func(es []translog.Entry) []translog.Entry {
					for i := range es {
						if es[i].Kind == translog.RepeatEntry {
							es[i].Repeat.Length = 1
							return es
						}
					}
					return es
				}),
			},
		} {
			t.Run(fmt.Sprintf("%v/%s", f, c.name), func(t *testing.T) {
				d := diverges(t, c.log, rules, replay.Options{})
				text := explain(t, d)
				assert.Equal(t, c.seq, d.Seq, text)
				assert.Contains(t, d.Error(), c.reason)
				assert.Contains(t, d.Error(), `world 0 "lane", record`)
				assert.Contains(t, d.Error(), "byte ")
				assert.Contains(t, text, "state before")
				assert.NotNil(t, d.Before)
				assert.False(t, d.Cut)
				for _, s := range c.says {
					assert.Contains(t, text, s)
				}
			})
		}
	}
}

// The last records of worlds and logs can be missed only by those who count.
func TestRecordsRemovedAtTheEndAreMissed(t *testing.T) {
	rules := compiled(t, rig()...)
	log := record(t, translog.Options{})
	d := diverges(t, remove(t, log, 58), rules, replay.Options{})
	assert.Equal(t, -1, d.World)
	assert.Contains(t, d.Error(), "the log: the log's end says 75 records and 0 lost; there are 74 and 0")

	cut := edit(t, log, func(es []translog.Entry) []translog.Entry {
		i := bySeq(t, es, 56) // taken along by 55
		j := bySeq(t, es, 58)
		return append(es[:i:i], es[j+1:]...)
	})
	d = diverges(t, cut, rules, replay.Options{})
	assert.EqualValues(t, 56, d.Seq)
	assert.Contains(t, d.Error(), "record 56 is missing: the log ends after 55")
	assert.Contains(t, explain(t, d), "replayed  56 step gate[1] enter(epoch=7)")
}

// Every part of a record that the rules decide is compared: altered in any
// record, it is found at that record, or, if it makes another input of it, later.
func TestEveryAlteredPartIsFound(t *testing.T) {
	rules := compiled(t, rig()...)
	log := record(t, translog.Options{Exact: true})
	parts := map[string]func(r *machine.Record){
		"kind":   func(r *machine.Record) { r.Kind = (r.Kind + 1) % machine.RecordKind(machine.NumRecordKinds) },
		"via":    func(r *machine.Record) { r.Via = (r.Via + 1) % machine.Via(machine.NumVia) },
		"parent": func(r *machine.Record) { r.Parent++ },
		"ref": func(r *machine.Record) {
			r.Ref.Slot++
			if r.Root.Slot+1 == r.Ref.Slot {
				r.Root.Slot++
			}
		},
		"generation": func(r *machine.Record) { r.Ref.Gen += 7; r.Root.Gen += 7 },
		"machine":    func(r *machine.Record) { r.Ref.Machine ^= 1; r.Root.Machine ^= 1 },
		"root":       func(r *machine.Record) { r.Root.Slot += 2 },
		"event":      func(r *machine.Record) { r.Event++ },
		"row":        func(r *machine.Record) { r.Row++ },
		"target":     func(r *machine.Record) { r.Target++ },
		"from":       func(r *machine.Record) { r.From++ },
		"to":         func(r *machine.Record) { r.To++ },
		"identity":   func(r *machine.Record) { r.Identity[0]++; r.NIdentity = max(r.NIdentity, 1) },
		"views":      func(r *machine.Record) { r.Views[0]++; r.NViews = max(r.NViews, 1) },
		"call":       func(r *machine.Record) { r.Call++ },
		"callargs":   func(r *machine.Record) { r.CallArgs[0]++; r.NCall = max(r.NCall, 1) },
		"refusal":    func(r *machine.Record) { r.Refusal = (r.Refusal + 1) % machine.RefusalKind(machine.NumRefusalKinds) },
		"reason":     func(r *machine.Record) { r.Reason++ },
		"by":         func(r *machine.Record) { r.By.Slot++ },
		"by event":   func(r *machine.Record) { r.ByEvent++ },
		"seq":        func(r *machine.Record) { r.Seq++ },
	}
	same := 0
	for name, alter := range parts {
		for seq := uint64(1); seq <= 58; seq++ {
			var before, after machine.Record
			altered := change(t, log, seq, func(r *machine.Record) { before = *r; alter(r); after = *r })
			// What is refused whoever is addressed is another input, as good as
			// the one there was: the log is then true to itself.
			res, err := run(altered, rules, replay.Options{})
			if err == nil && before.Kind == machine.Rejected && (name == "ref" || name == "machine" || name == "generation" || name == "event") {
				same++
				continue
			}
			var d *replay.Divergence
			require.ErrorAs(t, err, &d, "%s of record %d: %+v", name, seq, after)
			require.GreaterOrEqual(t, max(d.Seq, after.Seq), seq, "%s of record %d: %v", name, seq, err)
			require.Less(t, res.Worlds[0].Records, uint64(58))
			if d.Logged != nil && d.Replayed != nil {
				require.NotEmpty(t, d.Differences)
			}
			require.NotEmpty(t, explain(t, d))
		}
	}
	assert.Less(t, same, 25, "few alterations are excused")
}

func TestOtherRulesAreRefusedByName(t *testing.T) {
	log := record(t, translog.Options{})
	changed := rig()
	changed[0].Rows[0].Guard = "arg.epoch != none && arg.size > 0 && arg.size <= 7"
	more := append(rig(), &machine.Definition{
		Name: "extra", States: []machine.State{{Name: "on"}}, Events: []machine.Event{{Name: "e"}},
		Rows: []machine.Row{{ID: "e", From: "on", Event: "e", Then: []machine.Target{{Code: "3"}}}},
	})
	order := rig()
	order[1], order[2] = order[2], order[1]
	for _, c := range []struct {
		name     string
		rules    []*machine.Definition
		machines []string
		says     string
	}{
		{"changed", changed, []string{"job"}, "machine job changed: "},
		{"one more", more, []string{"extra"}, "machine extra is not in the log"},
		{"other order", order, nil, "the machines come in another order"},
	} {
		rules := compiled(t, c.rules...)
		res, err := run(log, rules, replay.Options{})
		var other *replay.RulesError
		require.ErrorAs(t, err, &other, c.name)
		require.NotNil(t, res)
		assert.Zero(t, res.Records)
		assert.Equal(t, rules.Hash().String(), other.Given)
		assert.Equal(t, res.Header.Rules, other.Logged)
		assert.Contains(t, err.Error(), c.says)
		var names []string
		for _, m := range other.Machines {
			names = append(names, m.Name)
		}
		assert.Equal(t, c.machines, names)
	}
	solo := compiled(t, rig()[1])
	_, err := run(log, solo, replay.Options{})
	assert.ErrorContains(t, err, "machine job is not among the given rules")
}

func TestOtherRulesOnDemand(t *testing.T) {
	for _, f := range []translog.Format{translog.Binary, translog.JSONLines} {
		log := record(t, translog.Options{Format: f})
		other := replay.Options{AllowOtherRules: true}

		// Rules with the same names at other positions replay to the end.
		moved := rig()
		moved[0], moved[1], moved[2] = moved[2], moved[0], moved[1]
		for _, d := range moved {
			if d.Name == "job" {
				d.States[1], d.States[4] = d.States[4], d.States[1]
				d.Rows[0], d.Rows[2], d.Rows[1], d.Rows[3] = d.Rows[2], d.Rows[0], d.Rows[3], d.Rows[1]
				d.Facts[3].Type, d.Events[0].Args[3].Type = "enum lazy|eager", "enum lazy|eager"
			}
		}
		rules := compiled(t, moved...)
		res, err := run(log, rules, other)
		var d *replay.Divergence
		if errors.As(err, &d) {
			require.NoError(t, err, explain(t, d))
		}
		require.NoError(t, err)
		assert.EqualValues(t, 75, res.Records)

		changed := rig()
		changed[0].Rows[0].Guard = "arg.epoch != none && arg.size > 0 && arg.size <= 7"
		d = diverges(t, log, compiled(t, changed...), other)
		assert.EqualValues(t, 2, d.Seq)
		assert.Contains(t, d.Error(), "kind is step in the log, refuse in the replay")
		assert.Contains(t, explain(t, d), "refused by row: wants an epoch and a size")

		// A name that is gone.
		gone := rig()
		gone[0].Events[3].Name = "shove"
		gone[0].Rows[5].Event, gone[0].Rows[6].Event = "shove", "shove"
		d = diverges(t, log, compiled(t, gone...), other)
		assert.EqualValues(t, 22, d.Seq)
		assert.Contains(t, d.Error(), `unknown event "nudge"`)
		var unknown *translog.NameError
		assert.ErrorAs(t, d, &unknown)

		// An argument more.
		shape := rig()
		shape[1].Events[0].Args = append(shape[1].Events[0].Args, fact("why", "bool"))
		shape[0].Rows[0].Then[0].With[0] = "gate.enter(arg.epoch, true)"
		d = diverges(t, log, compiled(t, shape...), other)
		assert.EqualValues(t, 3, d.Seq)
		assert.Contains(t, d.Error(), "args: 1 members, want 2")
	}
}

// A log in JSON can name what its own header does not know.
func TestUnknownNameIsADivergence(t *testing.T) {
	log := record(t, translog.Options{Format: translog.JSONLines})
	lines := strings.SplitAfter(string(log), "\n")
	for i, l := range lines {
		if strings.Contains(l, `"seq":17,`) {
			lines[i] = sealed(strings.Replace(l, `"event":"report"`, `"event":"reprot"`, 1))
		}
	}
	d := diverges(t, []byte(strings.Join(lines, "")), compiled(t, rig()...), replay.Options{})
	assert.EqualValues(t, 17, d.Seq)
	assert.Contains(t, d.Error(), `unknown event "reprot": did you mean "report"?`)
	text := explain(t, d)
	assert.Contains(t, text, "replayed  nothing")
	assert.Contains(t, text, "led there by\n    14 issue job[0] poll()")
	var unknown *translog.NameError
	assert.ErrorAs(t, d, &unknown)
}

// sealed gives a line the checksum it should have.
func sealed(line string) string {
	object := line[:strings.LastIndex(line, `,"crc":`)]
	return fmt.Sprintf("%s,\"crc\":\"%08x\"}\n", object, crc32.Checksum([]byte(object), crc32.MakeTable(crc32.Castagnoli)))
}

// chained is a machine each of whose steps emits the next: a long chain of
// causes, in one operation.
func chained() *machine.Definition {
	return &machine.Definition{
		Name: "chain", States: []machine.State{{Name: "on"}},
		Events: []machine.Event{{Name: "start"}, {Name: "next"}, {Name: "tick"}},
		Facts:  []machine.Fact{fact("n", "int 100"), fact("busy", "bool")},
		Rows: []machine.Row{
			{ID: "start", From: "on", Event: "start", Then: []machine.Target{{Do: "n = 0", Emit: []string{"self.next()"}}}},
			{ID: "next", From: "on", Event: "next", Guard: "n < 20", Then: []machine.Target{{Do: "n++", Emit: []string{"self.next()"}}}},
			{ID: "last", From: "on", Event: "next", Guard: "else", Then: []machine.Target{{Do: "n = 0"}}},
			{ID: "tick", From: "on", Event: "tick", Command: "Tick()", Then: []machine.Target{{Do: "busy = true"}}},
		},
	}
}

func TestChainOfCauses(t *testing.T) {
	rules := compiled(t, chained())
	var b bytes.Buffer
	w, err := translog.NewWriter(&b, rules, translog.Options{})
	require.NoError(t, err)
	in, err := rules.NewInstance(machine.InstanceConfig{Recorder: w.World("w", nil, 0), Performer: machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result { return machine.Result{} })})
	require.NoError(t, err)
	_, err = in.Fire(bg, in.Machine().MustEvent("start"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	log := change(t, b.Bytes(), 22, func(r *machine.Record) { r.Row = 1 })

	whole := func(d *replay.Divergence) {
		t.Helper()
		require.Len(t, d.Chain, 21)
		assert.False(t, d.Cut)
		for i, l := range d.Chain {
			assert.EqualValues(t, i+1, l.Seq)
		}
		assert.Contains(t, d.Chain[0].Text, "step chain start()")
	}
	var d *replay.Divergence
	_, err = run(log, rules, replay.Options{})
	require.ErrorAs(t, err, &d)
	whole(d)
	_, err = run(log, rules, replay.Options{Recent: 3})
	require.ErrorAs(t, err, &d)
	whole(d) // what memory does not hold is read again
	_, err = replay.Run(pipe{bytes.NewReader(log)}, rules, replay.Options{})
	require.ErrorAs(t, err, &d)
	whole(d)

	_, err = replay.Run(pipe{bytes.NewReader(log)}, rules, replay.Options{Recent: 3})
	require.ErrorAs(t, err, &d)
	require.Len(t, d.Chain, 2, "the record itself is one of the three")
	assert.True(t, d.Cut)
	assert.Contains(t, explain(t, d), "… (earlier records are not at hand)\n    20 step chain next()")

	// From where the reader stood.
	r := bytes.NewReader(append([]byte("before it"), log...))
	_, err = r.Seek(9, 0)
	require.NoError(t, err)
	_, err = replay.Run(r, rules, replay.Options{Recent: 3})
	require.ErrorAs(t, err, &d)
	whole(d)
}

// Causes among records that the log has as a repeat.
func TestChainThroughRepeats(t *testing.T) {
	changed := false
	rules := compiled(t, &machine.Definition{
		Name: "loop", States: []machine.State{{Name: "on"}},
		Events: []machine.Event{{Name: "start"}, {Name: "a"}, {Name: "b"}},
		Facts:  []machine.Fact{fact("n", "int 100")},
		Rows: []machine.Row{
			{ID: "start", From: "on", Event: "start", Then: []machine.Target{{Emit: []string{"self.a()"}}}},
			{ID: "a", From: "on", Event: "a", Then: []machine.Target{{Emit: []string{"self.b()"}}}},
			{ID: "b", From: "on", Event: "b", Then: []machine.Target{{Do: "n++"}}, GuardFunc: func(f machine.Facts) bool { return !changed || f[0] < 5 }},
			{ID: "b-else", From: "on", Event: "b", Guard: "else", Refuse: "enough"},
		},
	})
	var b bytes.Buffer
	w, err := translog.NewWriter(&b, rules, translog.Options{})
	require.NoError(t, err)
	in, err := rules.NewInstance(machine.InstanceConfig{Recorder: w.World("w", nil, 0)})
	require.NoError(t, err)
	for range 30 {
		_, err = in.Fire(bg, 0)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	res, err := run(b.Bytes(), rules, replay.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 87, res.Repeated)

	changed = true
	d := diverges(t, b.Bytes(), rules, replay.Options{})
	assert.EqualValues(t, 18, d.Seq, "the last of the sixth operation, which is part of a repeat")
	assert.Contains(t, d.Error(), "row is b in the log, b-else in the replay")
	require.Len(t, d.Chain, 2)
	assert.EqualValues(t, 16, d.Chain[0].Seq)
	assert.Contains(t, d.Chain[0].Text, "step loop start()")
	assert.EqualValues(t, 17, d.Chain[1].Seq)
	assert.False(t, d.Cut)
}

// A cause comes before its effect; a record that names another is not followed.
func TestCauseAfterItsEffectIsNotBelieved(t *testing.T) {
	rules := compiled(t, rig()...)
	log := record(t, translog.Options{})
	for _, parent := range []uint64{20, 25, 1 << 60} {
		d := diverges(t, change(t, log, 20, func(r *machine.Record) { r.Via, r.Parent = machine.ViaQueue, parent }), rules, replay.Options{})
		assert.Empty(t, d.Chain)
		assert.True(t, d.Cut)
		assert.Contains(t, explain(t, d), "earlier records are not at hand")
	}
}

// Rules with a function that panics stop the replay, not the program.
func TestPanickingRulesAreADivergence(t *testing.T) {
	angry := false
	def := func() *machine.Definition {
		return &machine.Definition{
			Name: "m", States: []machine.State{{Name: "on"}}, Events: []machine.Event{{Name: "e"}},
			Facts: []machine.Fact{fact("n", "int 100")},
			Rows: []machine.Row{{ID: "e", From: "on", Event: "e", Then: []machine.Target{{Do: "n++"}}, DoFunc: func(f machine.Facts) {
				if angry && f[0] == 3 {
					panic("three is too many")
				}
			}}},
		}
	}
	rules := compiled(t, def())
	var b bytes.Buffer
	w, err := translog.NewWriter(&b, rules, translog.Options{Exact: true})
	require.NoError(t, err)
	in, err := rules.NewInstance(machine.InstanceConfig{Recorder: w.World("w", nil, 0)})
	require.NoError(t, err)
	for range 5 {
		_, err = in.Fire(bg, 0)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	angry = true
	res, err := run(b.Bytes(), rules, replay.Options{})
	var d *replay.Divergence
	require.ErrorAs(t, err, &d)
	assert.EqualValues(t, 3, d.Seq)
	assert.Contains(t, err.Error(), "the rules panicked: three is too many")
	assert.EqualValues(t, 2, res.Records)
	n, _ := d.Before.Fact(d.Before.Ref(0, 0), 0)
	assert.EqualValues(t, 2, n)
}

// The state before is right however long ago the world was copied.
func TestStateBefore(t *testing.T) {
	rules := compiled(t, chained())
	var b bytes.Buffer
	w, err := translog.NewWriter(&b, rules, translog.Options{Exact: true})
	require.NoError(t, err)
	in, err := rules.NewInstance(machine.InstanceConfig{Recorder: w.World("w", nil, 0), Performer: machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result { return machine.Result{} })})
	require.NoError(t, err)
	for range 40 {
		_, err = in.Fire(bg, in.Machine().MustEvent("start"))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	const each = 22 // records of one operation: start, 20 times next, last
	for _, seq := range []uint64{1, 2, 255, 256, 257, 258, 300, 511, 512, 513, 514, 770} {
		_, err := run(change(t, b.Bytes(), seq, func(r *machine.Record) { r.From = 3 }), rules, replay.Options{})
		var d *replay.Divergence
		require.ErrorAs(t, err, &d)
		require.Equal(t, seq, d.Seq)
		n, _ := d.Before.Fact(d.Before.Ref(0, 0), 0)
		assert.Equal(t, max(int(seq-1)%each, 1)-1, int(n), "before %d", seq)
		assert.Equal(t, seq-1, d.Before.Seq())
	}
}

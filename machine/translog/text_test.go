package translog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// Members and Text say what the line of JSON says.
func TestTextOfASession(t *testing.T) {
	es, err := readAll(record(t, translog.Options{}))
	require.NoError(t, err)
	h, err := translog.HeaderOf(rigRules(t))
	require.NoError(t, err)
	var texts []string
	for _, e := range es {
		if e.Kind == translog.RecordEntry && e.World == 0 {
			texts = append(texts, h.Text(&e.Record))
		}
	}
	for _, want := range []string{
		"reserve token up to 41",
		"step log mint(): on [mint] {token=42}",
		"refuse run[0] arm(epoch=none, on=fence[0], mode=lazy, limit=12, seed=-7, quiet=false): idle [arm-no] refused by row: wants an epoch {epoch=none, on=none, mode=eager}",
		"step fence[0] take(): open [take] along with 4",
		"refuse run[0] 99(): armed bad argument {epoch=5, on=fence[0], mode=lazy}",
		"refuse run[0] arm(1, 2, 3): armed bad argument {epoch=5, on=fence[0], mode=lazy}",
		"refuse #77[9]~3 2() bad reference",
		"issue run[0] launch(): armed [launch] calls Submit(5, fence[0], lazy, armed, 0, 0) views held=1, busy=false {epoch=5, on=fence[0], mode=lazy}",
		`settle run[0] launch(): armed [launch target 3] answered failed code=507899 last=-3: maybe "attempted" views held=1, busy=false {epoch=5, on=fence[0], mode=lazy}`,
		"step run[0] touch(): hot, ☂▸poll [touch] {epoch=5, on=fence[0], mode=lazy}",
		"settle run[0] poll(): hot, ☂ → done [poll] answered ok code=3 value=1 {epoch=5, on=fence[0], mode=lazy}",
		"step log note(epoch=5, code=3): on [note] {token=42} queued by 30",
		"drop run[0]: done → idle {epoch=5, on=fence[0], mode=lazy}",
		"refuse run[2] arm(epoch=9, on=fence[0], mode=lazy, limit=12, seed=-7, quiet=false): idle [arm] refused by another instance: fence[0] take {epoch=none, on=none, mode=eager}",
	} {
		assert.Contains(t, texts, want)
	}
}

func TestTranslatorGoesByName(t *testing.T) {
	defs := rig()
	defs[0], defs[2] = defs[2], defs[0]
	moved := machine.MustCompile(defs...)
	from, err := translog.HeaderOf(rigRules(t))
	require.NoError(t, err)
	to, err := translog.HeaderOf(moved)
	require.NoError(t, err)
	es, err := readAll(record(t, translog.Options{}))
	require.NoError(t, err)
	there, back := translog.NewTranslator(from, to), translog.NewTranslator(to, from)
	for _, e := range es {
		if e.Kind != translog.RecordEntry {
			continue
		}
		x := e
		require.NoError(t, there.Translate(&x))
		assert.Equal(t, from.Text(&e.Record), to.Text(&x.Record))
		if e.Record.Ref.Machine == 0 && e.Record.Kind != machine.Reserved {
			assert.Equal(t, machine.MachineID(2), x.Record.Ref.Machine)
		}
		require.NoError(t, back.Translate(&x))
		assert.True(t, same(&e, &x))
	}

	defs = rig()
	defs[2].Events[1].Name, defs[2].Rows[1].Event = "coin", "coin"
	other, err := translog.HeaderOf(machine.MustCompile(defs...))
	require.NoError(t, err)
	tr := translog.NewTranslator(from, other)
	for _, e := range es {
		if e.Kind == translog.RecordEntry && strings.Contains(from.Text(&e.Record), "mint") {
			var unknown *translog.NameError
			require.ErrorAs(t, tr.Translate(&e), &unknown)
			assert.Equal(t, "mint", unknown.Name)
		}
	}
}

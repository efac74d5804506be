package sim_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

func TestHandleText(t *testing.T) {
	d := device(t, sim.Config{})
	w := makeToys(d, nil, nil, nil)
	require.Equal(t, "s1", sim.HandleName(uint64(w.streams[1])))
	require.Equal(t, "x0", sim.HandleName(uint64(d.Home())))
	require.Equal(t, "-", sim.HandleName(0))
	call(d, sim.Op{Kind: sim.OpDestroyEvent, Event: w.events[2]})
	e := call(d, sim.Op{Kind: sim.OpCreateEvent}).Handle
	require.Equal(t, "e2.2", sim.HandleName(e))
	for _, h := range []uint64{0, uint64(w.streams[1]), uint64(w.mems[3]), e} {
		got, err := sim.ParseHandle(sim.HandleName(h))
		require.NoError(t, err)
		require.Equal(t, h, got)
	}
	for _, bad := range []string{"", "s", "z1", "s1.1", "s01", "s1.", "s-1", "s1.0", "s99999999", "e1.4294967296", "?0", "?0x12", "s1 "} {
		_, err := sim.ParseHandle(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestChoiceText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := sim.Choice{
			Kind: sim.ChoiceKind(rapid.IntRange(1, int(sim.ChooseUnconfirmed)).Draw(t, "kind")),
			Code: backend.Code(rapid.Int32().Draw(t, "code")),
		}
		switch c.Kind {
		case sim.ChooseNotice, sim.ChooseLose:
			c.Target = rapid.Uint64().Draw(t, "notice")
		default:
			name := fmt.Sprintf("%c%d", "se"[rapid.IntRange(0, 1).Draw(t, "letter")], rapid.IntRange(0, 1<<24-1).Draw(t, "slot"))
			if g := rapid.Uint32Min(2).Draw(t, "generation"); g%3 == 0 {
				name += fmt.Sprint(".", g)
			}
			var err error
			c.Target, err = sim.ParseHandle(name)
			require.NoError(t, err)
		}
		got, err := sim.ParseChoice(c.String())
		require.NoError(t, err)
		require.Equal(t, c, got)
	})
	for _, bad := range []string{"", "entry", "entry s0 1 2", "leap s0", "entry 0", "notice s0", "fail c0 x", "fail c0 0"} {
		_, err := sim.ParseChoice(bad)
		require.ErrorIs(t, err, sim.ErrChoice, "%q", bad)
	}
}

func TestFaultText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := genFault().Draw(t, "fault")
		got, err := sim.ParseFault(f.String())
		require.NoError(t, err)
		require.Equal(t, f, got)
	})
	f, err := sim.ParseFault("SubmitAICPU#2 notice-late 16s")
	require.NoError(t, err)
	require.Equal(t, sim.Fault{Op: sim.OpSubmitAICPU, Nth: 2, Kind: sim.NoticeLate, Delay: 16 * time.Second}, f)
	for _, bad := range []string{
		"", "RecordEvent", "RecordEvent fail-after", "RecordEvent#0 fail-after", "RecordEvent#1 explode", "Record#1 refuse",
		"RecordEvent#1 fail-after soon", "RecordEvent#1 hang", "RecordEvent#1 kernel-fatal", "Reset#1 fail-accepted",
		"QueryEvent#1 unconfirmed", "RecordEvent#1 fail-after 1s", "Notices#1 refuse", "SubmitAICPU#1 notice-late -1s",
		"RecordEvent#-1 refuse", "RecordEvent#1 refuse 1 2s 3",
	} {
		_, err := sim.ParseFault(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestNamesAreParsedBack(t *testing.T) {
	for k := sim.OpCurrentContext; k <= sim.OpReset; k++ {
		got, err := sim.ParseOpKind(k.String())
		require.NoError(t, err)
		require.Equal(t, k, got)
	}
	_, err := sim.ParseOpKind("none")
	require.Error(t, err)
	require.Equal(t, "op(99)", sim.OpKind(99).String())
	require.Equal(t, "fault(99)", sim.FaultKind(99).String())
	require.Equal(t, "choice(0)", sim.ChoiceKind(0).String())
	require.Equal(t, "violation(99)", sim.ViolationKind(99).String())
	require.Equal(t, "trace(99)", sim.TraceKind(99).String())
	require.Equal(t, "kind(0)", sim.Kind(0).String())
}

func TestImpossibleConfigurations(t *testing.T) {
	for name, cfg := range map[string]sim.Config{
		"fault that cannot strike":  {Plan: []sim.Fault{{Op: sim.OpRecordEvent, Kind: sim.Hang}}},
		"fault of no kind":          {Plan: []sim.Fault{{Op: sim.OpRecordEvent}}},
		"kernel of no class":        {Kernels: []sim.KernelSpec{{Class: 2}}},
		"kernel that ends early":    {Kernels: []sim.KernelSpec{{Duration: -1}}},
		"flag after the end":        {Kernels: []sim.KernelSpec{{Duration: 1, FlagAfter: 2}}},
		"store of nothing":          {Kernels: []sim.KernelSpec{{Stores: []sim.Store{{}}}}},
		"store of nine bytes":       {Kernels: []sim.KernelSpec{{Stores: []sim.Store{{Size: 9}}}}},
		"copies that end early":     {CopyTime: -1},
		"queries that end early":    {QueryTime: -1},
		"notices that come early":   {NoticeTime: -1},
		"ring of less than nothing": {NoticeRing: -1},
	} {
		_, err := sim.New(cfg)
		require.ErrorIs(t, err, sim.ErrConfig, name)
	}
	d := device(t, sim.Config{})
	require.Error(t, d.Inject(sim.Fault{Op: sim.OpReset, Kind: sim.Hang}))
}

// A log survives being written down.
func TestStepsSurviveJSON(t *testing.T) {
	h, _ := soak(t, 1, 3, 5)
	b, err := json.Marshal(h.Log())
	require.NoError(t, err)
	var log []sim.Step
	require.NoError(t, json.Unmarshal(b, &log))
	base := device(t, soakConfig())
	soakSetup(base)
	require.NoError(t, sim.Replay(base, log))
	require.NotEmpty(t, log)
	for _, s := range log {
		require.NotEmpty(t, s.String())
	}
}

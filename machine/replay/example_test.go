package replay_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
)

// A log replays under the rules that made it; a record that is not theirs is
// explained.
func ExampleRun() {
	counter := &machine.Definition{
		Name: "counter", States: []machine.State{{Name: "on"}},
		Events: []machine.Event{{Name: "up"}},
		Facts:  []machine.Fact{{Name: "n", Type: "int 3"}}, Identity: []string{"n"},
		Rows: []machine.Row{{ID: "up", From: "on", Event: "up", Then: []machine.Target{{Do: "n++"}}}},
	}
	rules := machine.MustCompile(counter)
	var file bytes.Buffer
	log, _ := translog.NewWriter(&file, rules, translog.Options{})
	c, _ := rules.NewInstance(machine.InstanceConfig{Recorder: log.World("c", nil, 0)})
	for range 4 {
		_, _ = c.Fire(bg, 0) // the fourth is refused
	}
	_ = log.Close()

	res, err := replay.Run(bytes.NewReader(file.Bytes()), rules, replay.Options{})
	fmt.Println(res.Records, "records,", res.Refusals, "refused:", err)

	forged := bytes.Replace(convert(file.Bytes()), []byte(`"seq":3,"ref":"counter","event":"up","from":"on","row":"up","identity":{"n":3}`), []byte(`"seq":3,"ref":"counter","event":"up","from":"on","row":"up","identity":{"n":2}`), 1)
	_, err = replay.Run(bytes.NewReader(forgeChecksums(forged)), rules, replay.Options{})
	var d *replay.Divergence
	if errors.As(err, &d) {
		_ = d.Explain(os.Stdout)
	}
	// Output:
	// 4 records, 1 refused: <nil>
	// world 0 "c", record 3: identity.n is 2 in the log, 3 in the replay (line 6, byte 635, after record 2 of world 0)
	//   logged    3 step counter up(): on [up] {n=2}
	//   replayed  3 step counter up(): on [up] {n=3}
	//     identity.n: logged 2, replayed 3
	//   state before
	//     counter in on n=2
}

func convert(log []byte) []byte {
	var b bytes.Buffer
	if err := translog.Convert(&b, translog.JSONLines, bytes.NewReader(log)); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func forgeChecksums(log []byte) []byte {
	var out []byte
	for l := range bytes.Lines(log) {
		out = append(out, sealed(string(l))...)
	}
	return out
}

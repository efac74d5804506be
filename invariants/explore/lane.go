package explore

import (
	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine"
)

// Lane makes a [System] of a host, its lane and a simulated device: see
// [model.New], whose errors it returns. Its states are [Marker]s.
func Lane(c model.Config) (System, error) {
	l, err := newLane(c)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func newLane(c model.Config) (*lane, error) {
	s, err := model.New(c)
	if err != nil {
		return nil, err
	}
	l := &lane{System: s}
	rules := s.Rules()
	for id := range rules.NumMachines() {
		m := rules.At(machine.MachineID(id))
		l.first = append(l.first, len(l.names))
		for r := range m.NumRows() {
			l.names = append(l.names, m.Name()+"/"+m.RowID(machine.RowID(r)))
		}
	}
	return l, nil
}

type lane struct {
	*model.System
	names []string
	first []int // row of each machine
}

// New implements [System].
func (l *lane) New() State { return laneState{l, l.System.New()} }

// MoveText implements [System].
func (l *lane) MoveText(s State, m Move) string {
	return l.System.MoveText(s.(laneState).State, m)
}

// RowNames implements [RowNamer].
func (l *lane) RowNames() []string { return l.names }

type laneState struct {
	l *lane
	*model.State
}

// CopyFrom implements [State].
func (s laneState) CopyFrom(o State) { s.State.CopyFrom(o.(laneState).State) }

// MarkIn implements [Marker].
func (s laneState) MarkIn(rows *Rows) {
	s.Seen(func(r *machine.Record) {
		if r.Row != machine.NoRowID {
			rows.Mark(s.l.first[r.Ref.Machine] + int(r.Row))
		}
	})
}

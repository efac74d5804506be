package explore

import (
	"github.com/runfence/runfence/invariants/model"
)

// Lane makes a [System] of a lane and its device: see [model.New].
func Lane(c model.Config) (System, error) {
	s, err := model.New(c)
	if err != nil {
		return nil, err
	}
	return lane{s}, nil
}

type lane struct{ *model.System }

// New implements [System].
func (l lane) New() State { return laneState{l.System.New()} }

// MoveText implements [System].
func (l lane) MoveText(s State, m Move) string {
	return l.System.MoveText(s.(laneState).State, m)
}

type laneState struct{ *model.State }

// CopyFrom implements [State].
func (s laneState) CopyFrom(o State) { s.State.CopyFrom(o.(laneState).State) }

package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

var instanceForm = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)(?:\[([A-Za-z0-9_.-]+)\])?$`)

// look calls f with the world that inspection is about: the one stepped by
// hand if there is one, else the present lane's.
func (s *session) look(f func(w *machine.World) error) error {
	if s.pure != nil {
		return f(s.pure)
	}
	l, err := s.present()
	if err != nil {
		return err
	}
	l.Driver().View(func(w *machine.World) { err = f(w) })
	return err
}

// machineName checks a machine's name.
func machineName(rules *machine.Rules, n string) (*machine.Machine, error) {
	if m := rules.Machine(n); m != nil {
		return m, nil
	}
	return nil, errors.New(machine.Unknown("machine", n, rules.Machines()))
}

// ref reads "fence[0]", "fence[a]" for the slot of run a, or "lane".
func (s *session) instance(w *machine.World, text string) (machine.Ref, *machine.Machine, error) {
	p := instanceForm.FindStringSubmatch(text)
	if p == nil {
		return machine.Ref{}, nil, fmt.Errorf("%q: want an instance such as lane, fence[0], or fence[RUN] for the slot of a run", text)
	}
	m, err := machineName(w.Rules(), p[1])
	if err != nil {
		return machine.Ref{}, nil, err
	}
	slot := 0
	if p[2] != "" {
		if slot, err = strconv.Atoi(p[2]); err != nil {
			r, err := s.lane.run(p[2])
			if err != nil {
				return machine.Ref{}, nil, err
			}
			slot = r.Identity().Slot
		}
	}
	if slot < 0 || slot >= w.Capacity(m.ID()) {
		return machine.Ref{}, nil, fmt.Errorf("%s: there are %d of them, from 0", text, w.Capacity(m.ID()))
	}
	return w.Ref(m.ID(), slot), m, nil
}

// eventArgs puts the arguments of an event in order. run=NAME stands for the
// three parts of a run's identity. Left out, process is the present one, and a
// truth value is false.
func (s *session) eventArgs(w *machine.World, m *machine.Machine, ev machine.EventID, given []datadriven.CmdArg) ([]uint64, error) {
	decl := m.Definition().Events[ev].Args
	types := m.EventArgs(ev)
	args := make([]uint64, len(decl))
	set := make([]bool, len(decl))
	var known []string
	identity := false
	for i, d := range decl {
		known = append(known, d.Name)
		set[i] = types[i].Kind == machine.Bool
		switch d.Name {
		case "process":
			args[i], set[i] = s.naming.processes[s.process], true
		case "run_epoch":
			identity = true
		}
	}
	if identity {
		known = append(known, "run")
	}
	for _, g := range given {
		if len(g.Vals) != 1 {
			return nil, fmt.Errorf("%s: want %s=VALUE", g.Key, g.Key)
		}
		if g.Key == "run" && identity {
			r, err := s.lane.run(g.Vals[0])
			if err != nil {
				return nil, err
			}
			id := r.Identity()
			for i, d := range decl {
				switch d.Name {
				case "run_epoch":
					args[i], set[i] = id.RunEpoch, true
				case "generation":
					args[i], set[i] = id.Generation, true
				case "dispatch":
					args[i], set[i] = id.Dispatch, true
				}
			}
			continue
		}
		i := slices.Index(known, g.Key)
		if i < 0 {
			return nil, errors.New(machine.Unknown("argument of "+m.Name()+"."+m.EventName(ev), g.Key, known))
		}
		v, err := s.parseValue(w, types[i], g.Vals[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.Key, err)
		}
		args[i], set[i] = v, true
	}
	for i, d := range decl {
		if !set[i] {
			return nil, fmt.Errorf("%s.%s: %s is missing: want %s", m.Name(), m.EventName(ev), d.Name, strings.Join(known, ", "))
		}
	}
	return args, nil
}

// parseValue reads a value of a type: identities by the names of what they are of.
func (s *session) parseValue(w *machine.World, ty machine.Type, v string) (uint64, error) {
	switch {
	case v == "none" && (ty.Kind == machine.ID || ty.Kind == machine.RefTo):
		return 0, nil
	case ty.Kind == machine.RefTo:
		r, m, err := s.instance(w, v)
		if err == nil && m.Name() != ty.Name {
			err = fmt.Errorf("%q: want a %s", v, ty.Name)
		}
		return r.Pack(), err
	case ty.Kind == machine.Code:
		c, err := parseCode(v)
		return machine.CodeWord(int32(c)), err
	case ty.Kind == machine.ID && ty.Name == "process":
		if p, ok := s.naming.processes[v]; ok {
			return p, nil
		}
	case ty.Kind == machine.ID && ty.Name == "context":
		if c, ok := s.naming.contexts[v]; ok {
			return uint64(c), nil
		}
	case ty.Kind == machine.ID && s.lane != nil:
		if r, ok := s.runs()[v]; ok {
			if x := r.identity(ty.Name); x != 0 {
				return x, nil
			}
			return 0, fmt.Errorf("run %s has no %s", v, ty.Name)
		}
	}
	return ty.Parse(v)
}

// identity returns a run's identity of a sort, or 0.
func (r *run) identity(sort string) uint64 {
	switch sort {
	case "epoch":
		return r.Identity().RunEpoch
	case "generation":
		return r.Identity().Generation
	case "dispatch":
		return r.Identity().Dispatch
	case "arming":
		return r.arming
	case "permit":
		return r.permit
	}
	return 0
}

// value prints a value of a type: identities by the names of what they are of.
func (s *session) value(ty machine.Type, v uint64) string {
	switch {
	case v == 0 && (ty.Kind == machine.ID || ty.Kind == machine.RefTo):
		return "none"
	case ty.Kind == machine.RefTo:
		return s.opts.Rules.RefName(machine.UnpackRef(v))
	case ty.Kind == machine.Code && v != 0:
		return backend.Code(int32(uint32(v))).Brief()
	case ty.Kind == machine.ID && ty.Name == "process":
		return s.naming.process(v)
	case ty.Kind == machine.ID && ty.Name == "context":
		return s.naming.context(backend.Context(v))
	case ty.Kind == machine.ID && ty.Name != "generation" && s.lane != nil:
		for n, r := range s.runs() {
			if r.identity(ty.Name) == v {
				return n
			}
		}
	}
	return ty.Format(v)
}

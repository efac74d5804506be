package machinetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// scope draws expressions that have a meaning in one place.
type scope struct {
	*generator
	d        *machine.Definition
	args     []machine.Fact
	settling bool
	viewing  bool
	outer    *machine.Definition // whose slot self and peers are of, within any and count
}

func (x *scope) home() *machine.Definition {
	if x.outer != nil {
		return x.outer
	}
	return x.d
}

// boolean draws a condition.
func (x *scope) boolean(depth int) string {
	kinds := 6
	if depth == 0 {
		kinds = 3
	}
	switch x.n("condition", 0, kinds) {
	case 0:
		return x.value("bool")
	case 1, 2, 3:
		ty := pick(x.generator, "compared", append(x.types(), "int 3"))
		// For == one side must show that it is of just that type.
		shown := x.named(ty, func(a, b string) bool { return a == b })
		if strings.HasPrefix(ty, "int") && (len(shown) == 0 || x.chance("less", 50)) {
			return x.value(ty) + pick(x.generator, "order", []string{" < ", " <= ", " > ", " >= "}) + x.value(ty)
		}
		if x.chance("state", 20) {
			return fmt.Sprintf("state %s %q", pick(x.generator, "equality", []string{"==", "!="}), pick(x.generator, "state", x.d.States).Name)
		}
		return pick(x.generator, "name", shown) + pick(x.generator, "equality", []string{" == ", " != "}) + x.value(ty)
	case 4:
		return "!(" + x.boolean(depth-1) + ")"
	case 5:
		return "(" + x.boolean(depth-1) + " && " + x.boolean(depth-1) + ")"
	}
	return "(" + x.boolean(depth-1) + " || " + x.boolean(depth-1) + ")"
}

// types lists the types that something in scope has.
func (x *scope) types() []string {
	var out []string
	for _, f := range x.d.Facts {
		out = append(out, f.Type)
	}
	for _, a := range x.args {
		out = append(out, a.Type)
	}
	return out
}

func alike(a, b string) bool {
	return a == b || strings.HasPrefix(a, "int") && strings.HasPrefix(b, "int")
}

// named lists what is of a type, or of one like it, and says so by itself.
func (x *scope) named(ty string, alike func(a, b string) bool) []string {
	var out []string
	for _, f := range x.d.Facts {
		if alike(f.Type, ty) {
			out = append(out, f.Name)
		}
	}
	for _, a := range x.args {
		if alike(a.Type, ty) {
			out = append(out, "arg."+a.Name)
		}
	}
	if ty == "ref "+x.home().Name {
		out = append(out, "self")
	}
	if x.settling {
		switch {
		case ty == "code":
			out = append(out, "res.code", "res.last")
		case ty == "bool":
			out = append(out, "res.accepted")
		case strings.HasPrefix(ty, "int"):
			out = append(out, "res.value")
		}
	}
	if x.viewing {
		for name, d := range x.peers() {
			for _, f := range d.Facts {
				if alike(f.Type, ty) {
					out = append(out, name+"."+f.Name)
				}
			}
		}
		slices.Sort(out)
		return out
	}
	for _, v := range x.d.Views {
		if alike(viewType(v.Expr), ty) {
			out = append(out, "view."+v.Name)
		}
	}
	return out
}

// literal draws a constant of a type.
func (x *scope) literal(ty string) string {
	switch {
	case ty == "bool":
		return pick(x.generator, "bool", []string{"true", "false"})
	case strings.HasPrefix(ty, "int"):
		var most int
		fmt.Sscanf(ty, "int %d", &most)
		return fmt.Sprint(x.n("int", 0, most))
	case ty == "code":
		return fmt.Sprint(pick(x.generator, "code", []int{0, 507018, -1}))
	case strings.HasPrefix(ty, "enum"):
		return pick(x.generator, "enum", []string{"red", "green", "blue"})
	}
	return "none"
}

// value draws an expression of a type.
func (x *scope) value(ty string) string {
	all := x.named(ty, alike)
	if x.settling && !strings.HasPrefix(ty, "ref") && x.chance("answer", 10) {
		return "res.value"
	}
	if len(all) > 0 && x.chance("name", 65) {
		return pick(x.generator, "name", all)
	}
	return x.literal(ty)
}

// anything draws an expression that shows its type by itself.
func (x *scope) anything() string {
	switch x.n("anything", 0, 3) {
	case 0:
		return x.boolean(1)
	case 1:
		return x.literal("int 3")
	}
	ty := pick(x.generator, "type", x.types())
	if all := x.named(ty, alike); len(all) > 0 {
		return pick(x.generator, "name", all)
	}
	return x.d.Facts[0].Name
}

// updates draws a list of updates.
func (x *scope) updates() string {
	var out []string
	for range x.n("updates", 1, 3) {
		f := pick(x.generator, "fact", x.d.Facts)
		switch {
		case strings.HasPrefix(f.Type, "int") && x.chance("count", 60):
			out = append(out, f.Name+pick(x.generator, "way", []string{"++", "++", "--"}))
		case strings.HasPrefix(f.Type, "id") && x.chance("fresh", 40):
			out = append(out, f.Name+" = fresh()")
		case f.Type == "bool" && x.chance("condition", 40):
			out = append(out, f.Name+" = "+x.boolean(1))
		default:
			out = append(out, f.Name+" = "+x.value(f.Type))
		}
	}
	return strings.Join(out, "; ")
}

// peers lists the machines that can be named here, by what names them: a
// machine that has one instance or stands beside, or a ref.
func (x *scope) peers() map[string]*machine.Definition {
	out := map[string]*machine.Definition{}
	if !x.many {
		return out
	}
	byName := map[string]*machine.Definition{}
	for _, d := range x.defs {
		byName[d.Name] = d
		if d.Pool == "" || d.Pool == x.home().Pool {
			out[d.Name] = d
		}
	}
	for _, f := range x.d.Facts {
		if name, ok := strings.CutPrefix(f.Type, "ref "); ok {
			out[f.Name] = byName[name]
		}
	}
	return out
}

// send draws an event for a peer, or nothing.
func (x *scope) send(only func(name string, d *machine.Definition) bool, event func(d *machine.Definition) machine.Event) string {
	var names []string
	peers := x.peers()
	for name, d := range peers {
		if only(name, d) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	name := pick(x.generator, "peer", names)
	ev := event(peers[name])
	args := make([]string, len(ev.Args))
	for i, a := range ev.Args {
		args[i] = x.value(a.Type)
	}
	return fmt.Sprintf("%s.%s(%s)", name, ev.Name, strings.Join(args, ", "))
}

// along draws quiet events of machines further on in the list: so taking along
// comes to an end.
func (x *scope) along(i int) []string {
	var out []string
	for range x.n("taken along", 1, 2) {
		s := x.send(func(_ string, d *machine.Definition) bool { return slices.Index(x.defs, d) > i }, func(d *machine.Definition) machine.Event { return d.Events[1] })
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// emits draws events for anybody.
func (x *scope) emits() []string {
	if !x.many {
		return nil
	}
	var out []string
	for range x.n("emitted", 1, 2) {
		out = append(out, x.send(func(string, *machine.Definition) bool { return true }, func(d *machine.Definition) machine.Event { return pick(x.generator, "event", d.Events) }))
	}
	return out
}

// viewed draws the expression of a view.
func (x *scope) viewed() string {
	d := pick(x.generator, "viewed", x.defs)
	in := &scope{generator: x.generator, d: d, viewing: true, outer: x.d}
	switch x.n("view", 0, 3) {
	case 0:
		return fmt.Sprintf("any(%s, %s)", d.Name, in.boolean(1))
	case 1:
		return fmt.Sprintf("count(%s, %s)", d.Name, in.boolean(1))
	case 2:
		return fmt.Sprintf("first(%s, %s)", d.Name, in.boolean(1))
	}
	return x.boolean(1)
}

// viewType is the type of what viewed has drawn.
func viewType(expr string) string {
	switch call, rest, _ := strings.Cut(expr, "("); call {
	case "count":
		return "int 9"
	case "first":
		name, _, _ := strings.Cut(rest, ",")
		return "ref " + name
	}
	return "bool"
}

package machine

// Definition declares one lifecycle as data. It is what authors write, what
// JSON carries, what diagrams and pages are drawn from, and what mutation
// changes. [Compile] checks it and makes it fast.
//
// Guards, updates, commands and events to send are short texts in Go
// expression syntax; see [ParseExpr] for what may be said in them.
type Definition struct {
	// Name is the machine's name: a Go identifier, for other machines to call it by.
	Name string `json:"name"`
	Doc  string `json:"doc,omitempty"`
	// Source names the section that rules this lifecycle.
	Source string `json:"source,omitempty"`
	// Pool names the pool that instances of this machine live in. Machines of
	// one pool have the same capacity and stand side by side: the instance in
	// slot 3 of one is the peer of slot 3 of another. Empty: one instance a world.
	Pool string `json:"pool,omitempty"`

	States []State `json:"states"`
	Events []Event `json:"events"`
	Facts  []Fact  `json:"facts,omitempty"`
	// Identity names the facts, at most 4, that say which occupant an
	// instance stands for. They go into every record.
	Identity []string `json:"identity,omitempty"`
	Views    []View   `json:"views,omitempty"`
	Rows     []Row    `json:"rows"`
}

// State is one control state. The first state of a Definition is the initial one.
type State struct {
	Name string `json:"name"`
	// Terminal states have no rows but refusals; an instance in one may be dropped.
	Terminal bool `json:"terminal,omitempty"`
	// Kept terminal states are never dropped: a quarantine.
	Kept bool   `json:"kept,omitempty"`
	Doc  string `json:"doc,omitempty"`
}

// Event is something that can happen to an instance.
type Event struct {
	// Name is a Go identifier.
	Name string `json:"name"`
	// Args are at most [MaxArgs].
	Args []Fact `json:"args,omitempty"`
	Doc  string `json:"doc,omitempty"`
}

// Fact is one named value of an instance, or one argument of an event. Every
// fact starts as its type's zero: false, 0, none, or the first enum name.
type Fact struct {
	// Name is a Go identifier.
	Name string `json:"name"`
	// Type is one of
	//
	//	bool
	//	int N          0 to N
	//	id SORT        an identity: only ==, none and fresh()
	//	ref MACHINE    an instance of another machine, or none
	//	enum a|b|c
	//	code           a return code, any 32-bit number
	Type string `json:"type"`
	Doc  string `json:"doc,omitempty"`
}

// View is a named projection of other instances' facts, for guards to read as
// view.NAME. It is evaluated under the world's lock and logged.
//
//	fence.refs == 0                 a peer's fact (same slot, or the only instance)
//	lane.state == "open"            a peer's state
//	any(run, state == "launched")   over all instances of a machine
//	count(token, live && fence == self)
//	first(token, state == "free")    the first such instance, or none
type View struct {
	Name string `json:"name"`
	Expr string `json:"expr"`
	Doc  string `json:"doc,omitempty"`
}

// Row says what an event does in a state. A row is one of three:
//
//   - a transition: Then, with a target for every outcome of its Command, or
//     one target if it has none;
//   - a named refusal: Refuse. The instance is untouched;
//   - a deferral: Defer. The caller waits for the state to change.
//
// The rows of one state and event are tried in order, and the last one must
// take what is left: it has no guard, or the guard "else", or the negation of
// the only other guard.
type Row struct {
	// ID is unique in the Definition, and stays when the Definition is edited.
	ID string `json:"id"`
	// From is a state, several joined by "|", or "STATE▸ROW": in flight on that
	// row's command. A row from an in-flight state has no command and stays there.
	From  string `json:"from"`
	Event string `json:"event"`
	Guard string `json:"guard,omitempty"`
	// Refuse names the reason.
	Refuse Reason `json:"refuse,omitempty"`
	Defer  bool   `json:"defer,omitempty"`

	// Before lists updates made when the row is chosen, before the command.
	Before string `json:"before,omitempty"`
	// With lists events that other instances take in the same atomic step,
	// before the command. If one refuses, the row refuses and nothing changed.
	With []string `json:"with,omitempty"`
	// Command is a call of the backend: Name(arg, …).
	Command string   `json:"command,omitempty"`
	Then    []Target `json:"then,omitempty"`

	Doc    string `json:"doc,omitempty"`
	Source string `json:"source,omitempty"`

	// GuardFunc and DoFunc are for hosts with small machines of their own. A
	// Definition that uses them is opaque: it has no JSON form, cannot be
	// exported, and its hash covers only that something opaque is there.
	// GuardFunc is and-ed to Guard, and what it writes is lost. DoFunc runs after
	// the Do of each target. Both run under the world's lock: they must not
	// block, nor call a driver or an instance of it. If one panics, the world is
	// as it was before the step, and the panic goes on to the caller.
	GuardFunc func(Facts) bool `json:"-"`
	DoFunc    func(Facts)      `json:"-"`
}

// Target is where a row goes for some outcomes.
type Target struct {
	// On lists outcomes, separated by spaces: ok refused failed panicked
	// timedout. Empty is every outcome that no other target of the row names.
	On string `json:"on,omitempty"`
	// When splits an outcome by what it brought (res.code, res.value,
	// res.accepted, res.last) or by facts. Targets of one outcome are tried in
	// order; the last has none.
	When string `json:"when,omitempty"`
	// To is the new state; empty stays.
	To string `json:"to,omitempty"`
	// Do lists updates: "live++; epoch = arg.epoch; token = fresh()".
	Do string `json:"do,omitempty"`
	// With lists events taken in the same atomic step. They must be accepted:
	// a refusal is a hole in the rules, see [ErrRuleHole].
	With []string `json:"with,omitempty"`
	// Emit lists events queued for later steps of the same host operation, in
	// order, ahead of those that are waiting already: what a step starts is done
	// before the operation goes on.
	Emit []string `json:"emit,omitempty"`
	// Code and Return are what the host operation reports: expressions.
	Code   string `json:"code,omitempty"`
	Return string `json:"return,omitempty"`
	// Error makes the operation fail with that reason.
	Error Reason `json:"error,omitempty"`
}

// Limits of a Definition.
const (
	// MaxArgs bounds the arguments of an event and of a command.
	MaxArgs = 8
	// MaxViews bounds the views that the rows of one state and event read.
	MaxViews = 15
	// MaxIdentity bounds the facts of an identity.
	MaxIdentity = 4
	// maxText bounds one expression or list of updates, in bytes.
	maxText = 4096
)

// Reason is a named cause of a refusal or a failure. Reasons are constants and
// comparable, so errors.Is(err, ErrX) holds for an error that carries ErrX.
type Reason string

// Error returns the reason's text.
func (r Reason) Error() string { return string(r) }

// Facts gives an opaque function access to an instance's facts, by position
// in [Definition.Facts].
type Facts []uint64

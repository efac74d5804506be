package machine

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strconv"
	"strings"
)

// Op is the operator of an [Expr].
type Op uint8

// The operators. != <= >= and > are read as their equivalents in these.
const (
	OpConst Op = iota // Value
	OpName            // a bare name: a fact, an enum name, true, false, none, self, state, else
	OpText            // a quoted state or enum name
	OpField           // Peer.Name: arg.x, view.x, res.x, or a fact of a peer
	OpAnd             // all of Args
	OpOr              // any of Args
	OpNot             // Args[0]
	OpEq              // Args[0] == Args[1]
	OpLess            // Args[0] < Args[1]
	OpCall            // Name(Args): any, count, fresh
)

// Expr is a node of a guard, an argument or a right-hand side. It is plain
// data: what is compiled, printed, mutated and exported.
type Expr struct {
	Op    Op
	Name  string
	Peer  string
	Value int64
	Args  []*Expr
}

// ParseExpr reads one expression in Go syntax, restricted to
//
//	true false none 3 -1 name "a state" self state
//	arg.x  view.x  res.code  res.value  res.accepted  res.last
//	peer.fact  peer.state          (in views only)
//	any(machine, e)  count(machine, e)  first(machine, e)   (in views only)
//	fresh()                        (alone, in an update)
//	e && e   e || e   !e   e == e   e != e   e < e   e <= e   e > e   e >= e   (e)
//
// Errors carry the column.
func ParseExpr(text string) (*Expr, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("expression of %d bytes: at most %d", len(text), maxText)
	}
	if d := nesting(text); d > 64 {
		return nil, fmt.Errorf("expression nested %d deep: at most 64", d)
	}
	a, err := parser.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, columnError(err, 0))
	}
	e, err := fromAST(a)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, columnError(err, 0))
	}
	return e, nil
}

// nesting bounds the recursion of the parser and of everything after it.
func nesting(text string) int {
	depth, deepest, run := 0, 0, 0
	for _, c := range text {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '!', '-', '*', '&', '<', '^', '+':
			run++
		case ' ', '\t', '\n':
		default:
			run = 0
		}
		deepest = max(deepest, depth, run)
	}
	return deepest
}

// placed is a fault at a place in the text that the Go parser was given.
type placed struct {
	pos token.Pos
	msg string
}

func (e *placed) Error() string { return e.msg }

// columnError words a fault with its column, in bytes from 1, in a text that
// the Go parser was given after head other bytes.
func columnError(err error, head int) error {
	var p *placed
	var list scanner.ErrorList
	switch {
	case errors.As(err, &p):
		return fmt.Errorf("column %d: %s", int(p.pos)-head, p.msg)
	case errors.As(err, &list) && len(list) > 0:
		return fmt.Errorf("column %d: %s", list[0].Pos.Offset+1-head, list[0].Msg)
	}
	return err
}

func fromAST(a ast.Expr) (*Expr, error) {
	at := func(format string, args ...any) error {
		return &placed{a.Pos(), fmt.Sprintf(format, args...)}
	}
	two := func(op Op, x, y ast.Expr) (*Expr, error) {
		l, err := fromAST(x)
		if err != nil {
			return nil, err
		}
		r, err := fromAST(y)
		if err != nil {
			return nil, err
		}
		return &Expr{Op: op, Args: []*Expr{l, r}}, nil
	}
	not := func(e *Expr, err error) (*Expr, error) {
		if err != nil {
			return nil, err
		}
		return &Expr{Op: OpNot, Args: []*Expr{e}}, nil
	}
	switch a := a.(type) {
	case *ast.Ident:
		return &Expr{Op: OpName, Name: a.Name}, nil
	case *ast.BasicLit:
		switch a.Kind {
		case token.INT:
			v, err := strconv.ParseInt(a.Value, 0, 64)
			if err != nil {
				return nil, at("%s is not a number I can hold", a.Value)
			}
			return &Expr{Op: OpConst, Value: v}, nil
		case token.STRING:
			s, err := strconv.Unquote(a.Value)
			if err != nil {
				return nil, at("bad string %s", a.Value)
			}
			return &Expr{Op: OpText, Name: s}, nil
		}
		return nil, at("%s: want a whole number or a quoted name", a.Value)
	case *ast.ParenExpr:
		return fromAST(a.X)
	case *ast.SelectorExpr:
		x, ok := a.X.(*ast.Ident)
		if !ok {
			return nil, at("want name.name")
		}
		return &Expr{Op: OpField, Peer: x.Name, Name: a.Sel.Name}, nil
	case *ast.UnaryExpr:
		switch a.Op {
		case token.NOT:
			return not(fromAST(a.X))
		case token.SUB:
			e, err := fromAST(a.X)
			if err != nil {
				return nil, err
			}
			if e.Op != OpConst {
				return nil, at("- is only for numbers")
			}
			e.Value = -e.Value
			return e, nil
		}
		return nil, at("unknown operator %s", a.Op)
	case *ast.BinaryExpr:
		switch a.Op {
		case token.LAND, token.LOR:
			op := OpAnd
			if a.Op == token.LOR {
				op = OpOr
			}
			e, err := two(op, a.X, a.Y)
			if err != nil {
				return nil, err
			}
			// One flat node for a && b && c: simpler mutation.
			if l := e.Args[0]; l.Op == op {
				l.Args = append(l.Args, e.Args[1])
				return l, nil
			}
			return e, nil
		case token.EQL:
			return two(OpEq, a.X, a.Y)
		case token.NEQ:
			return not(two(OpEq, a.X, a.Y))
		case token.LSS:
			return two(OpLess, a.X, a.Y)
		case token.GTR:
			return two(OpLess, a.Y, a.X)
		case token.GEQ:
			return not(two(OpLess, a.X, a.Y))
		case token.LEQ:
			return not(two(OpLess, a.Y, a.X))
		}
		return nil, at("unknown operator %s", a.Op)
	case *ast.CallExpr:
		f, ok := a.Fun.(*ast.Ident)
		if !ok {
			return nil, at("want name(…)")
		}
		e := &Expr{Op: OpCall, Name: f.Name}
		for _, x := range a.Args {
			s, err := fromAST(x)
			if err != nil {
				return nil, err
			}
			e.Args = append(e.Args, s)
		}
		return e, nil
	}
	return nil, at("not an expression that rules may use")
}

// String prints the expression so that [ParseExpr] reads it back.
func (e *Expr) String() string { return e.text(0) }

// text prints with parentheses where an operator of lower precedence than min needs them.
func (e *Expr) text(min int) string {
	join := func(op string, prec int) string {
		parts := make([]string, len(e.Args))
		for i, a := range e.Args {
			parts[i] = a.text(prec + 1)
		}
		s := strings.Join(parts, op)
		if prec < min {
			return "(" + s + ")"
		}
		return s
	}
	switch e.Op {
	case OpConst:
		return strconv.FormatInt(e.Value, 10)
	case OpName:
		return e.Name
	case OpText:
		return strconv.Quote(e.Name)
	case OpField:
		return e.Peer + "." + e.Name
	case OpOr:
		return join(" || ", 1)
	case OpAnd:
		return join(" && ", 2)
	case OpEq:
		return join(" == ", 3)
	case OpLess:
		return join(" < ", 3)
	case OpNot:
		x := e.Args[0]
		op, binary := map[Op]string{OpEq: " != ", OpLess: " >= "}[x.Op]
		if !binary {
			return "!" + x.text(5)
		}
		s := x.Args[0].text(4) + op + x.Args[1].text(4)
		if min > 3 {
			return "(" + s + ")"
		}
		return s
	case OpCall:
		parts := make([]string, len(e.Args))
		for i, a := range e.Args {
			parts[i] = a.text(0)
		}
		return e.Name + "(" + strings.Join(parts, ", ") + ")"
	}
	return "?"
}

// equal reports structural equality.
func (e *Expr) equal(o *Expr) bool {
	if e.Op != o.Op || e.Name != o.Name || e.Peer != o.Peer || e.Value != o.Value || len(e.Args) != len(o.Args) {
		return false
	}
	for i := range e.Args {
		if !e.Args[i].equal(o.Args[i]) {
			return false
		}
	}
	return true
}

// UpdateOp is the operator of an [Update].
type UpdateOp uint8

// The updates.
const (
	Assign    UpdateOp = iota // fact = Expr
	Increment                 // fact++
	Decrement                 // fact--
)

// Update changes one fact.
type Update struct {
	Fact string
	Op   UpdateOp
	Expr *Expr // for Assign
}

// String prints the update so that [ParseUpdates] reads it back.
func (u Update) String() string {
	switch u.Op {
	case Increment:
		return u.Fact + "++"
	case Decrement:
		return u.Fact + "--"
	}
	return u.Fact + " = " + u.Expr.String()
}

// ParseUpdates reads a list of updates separated by semicolons:
//
//	live++; waits--; epoch = arg.epoch; token = fresh(); sealed = true
//
// They are made in order; each sees the ones before it.
func ParseUpdates(text string) ([]Update, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("updates of %d bytes: at most %d", len(text), maxText)
	}
	if d := nesting(text); d > 64 {
		return nil, fmt.Errorf("updates nested %d deep: at most 64", d)
	}
	const head = "package p;func _(){"
	f, err := parser.ParseFile(token.NewFileSet(), "", head+text+"}", parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("%q: not a list of updates (name = expr; name++; name--): %w", text, columnError(err, len(head)))
	}
	fn, ok := f.Decls[0].(*ast.FuncDecl)
	if !ok || len(f.Decls) != 1 || int(fn.Body.Rbrace) != len(head)+len(text)+1 {
		return nil, fmt.Errorf("%q: not a list of updates: it has a brace too many", text)
	}
	var out []Update
	for _, s := range fn.Body.List {
		u, err := updateFromAST(s)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, columnError(err, len(head)))
		}
		out = append(out, u)
	}
	return out, nil
}

func updateFromAST(s ast.Stmt) (Update, error) {
	switch s := s.(type) {
	case *ast.IncDecStmt:
		id, ok := s.X.(*ast.Ident)
		if !ok {
			return Update{}, &placed{s.Pos(), "want a fact before " + s.Tok.String()}
		}
		op := Increment
		if s.Tok == token.DEC {
			op = Decrement
		}
		return Update{Fact: id.Name, Op: op}, nil
	case *ast.AssignStmt:
		if s.Tok != token.ASSIGN || len(s.Lhs) != 1 || len(s.Rhs) != 1 {
			return Update{}, &placed{s.Pos(), "want fact = expression"}
		}
		id, ok := s.Lhs[0].(*ast.Ident)
		if !ok {
			return Update{}, &placed{s.Pos(), "want a fact on the left"}
		}
		e, err := fromAST(s.Rhs[0])
		if err != nil {
			return Update{}, err
		}
		return Update{Fact: id.Name, Op: Assign, Expr: e}, nil
	}
	return Update{}, &placed{s.Pos(), "want fact = expression, fact++ or fact--"}
}

// FormatUpdates prints a list so that [ParseUpdates] reads it back.
func FormatUpdates(us []Update) string {
	parts := make([]string, len(us))
	for i, u := range us {
		parts[i] = u.String()
	}
	return strings.Join(parts, "; ")
}

// Invocation is a command, Name(Args), or an event for another instance,
// Peer.Name(Args).
type Invocation struct {
	Peer string // a machine, a ref fact, or self; empty in a command
	Name string
	Args []*Expr
}

// String prints the invocation so that [ParseInvocation] reads it back.
func (c Invocation) String() string {
	e := Expr{Op: OpCall, Name: c.Name, Args: c.Args}
	if c.Peer != "" {
		e.Name = c.Peer + "." + c.Name
	}
	return e.String()
}

// ParseInvocation reads Name(arg, …) or peer.event(arg, …).
func ParseInvocation(text string) (Invocation, error) {
	bad := func(why string) (Invocation, error) {
		return Invocation{}, fmt.Errorf("%q: %s", text, why)
	}
	if len(text) > maxText || nesting(text) > 64 {
		return bad("too long or nested too deep")
	}
	a, err := parser.ParseExpr(text)
	if err != nil {
		return bad(columnError(err, 0).Error())
	}
	call, ok := a.(*ast.CallExpr)
	if !ok {
		return bad("want name(arguments)")
	}
	var c Invocation
	switch f := call.Fun.(type) {
	case *ast.Ident:
		c.Name = f.Name
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		if !ok {
			return bad("want peer.event(arguments)")
		}
		c.Peer, c.Name = x.Name, f.Sel.Name
	default:
		return bad("want name(arguments)")
	}
	for _, x := range call.Args {
		e, err := fromAST(x)
		if err != nil {
			return bad(columnError(err, 0).Error())
		}
		c.Args = append(c.Args, e)
	}
	return c, nil
}

package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/runfence/runfence/backend"
)

// ChoiceKind says what a [Choice] lets happen.
type ChoiceKind uint8

const (
	// ChooseFlag: the kernel at the head of a stream publishes its flag.
	ChooseFlag ChoiceKind = iota + 1
	// ChooseEntry: the head of a stream takes effect; a kernel returns.
	ChooseEntry
	// ChooseFatal: the kernel at the head of a stream returns a fatal status. A fault.
	ChooseFatal
	// ChooseHang: the kernel at the head of a stream will never return. A fault.
	ChooseHang
	// ChooseNotice: a notice that is under way is delivered.
	ChooseNotice
	// ChooseLose: a notice that is under way never arrives. A fault.
	ChooseLose
	// ChooseEffect: a call that was begun takes effect on the device.
	ChooseEffect
	// ChooseReturn: a call returns to the host with its own answer.
	ChooseReturn
	// ChooseExpire: a bounded wait expires.
	ChooseExpire
	// ChooseRefuse: a call that was begun is not attempted. A fault.
	ChooseRefuse
	// ChooseFail: a call returns an error; after its effect, if it had taken
	// effect. A fault.
	ChooseFail
	// ChooseFailAccepted: a call that took effect returns an error but is known
	// to be accepted. A fault.
	ChooseFailAccepted
	// ChoosePanic: a call panics; after its effect, if it had taken effect. A fault.
	ChoosePanic
	// ChooseUnconfirmed: a reset has no effect and is not confirmed. A fault.
	ChooseUnconfirmed

	numChoices = int(ChooseUnconfirmed) + 1
)

var choiceNames = [numChoices]string{
	"", "flag", "entry", "fatal", "hang", "notice", "lose", "effect", "return", "expire",
	"refuse", "fail", "fail-accepted", "panic", "unconfirmed",
}

// String returns the kind's name, such as "entry".
func (k ChoiceKind) String() string {
	if k > 0 && int(k) < numChoices {
		return choiceNames[k]
	}
	return "choice(" + strconv.Itoa(int(k)) + ")"
}

// Fault reports that the choice injects a fault and uses up budget.
func (k ChoiceKind) Fault() bool {
	switch k {
	case ChooseFatal, ChooseHang, ChooseLose, ChooseRefuse, ChooseFail, ChooseFailAccepted, ChoosePanic, ChooseUnconfirmed:
		return true
	}
	return false
}

// Choice is one thing that may happen next. It is comparable and small.
type Choice struct {
	Kind ChoiceKind
	// Target is the stream or call concerned, or the position of a notice among
	// those under way.
	Target uint64
	// Code is what a fault reports, else zero.
	Code backend.Code
}

// String writes the choice as [ParseChoice] reads it: "entry s0", "notice 1",
// "fail c2.7 507000".
func (c Choice) String() string {
	s := c.Kind.String() + " "
	if c.Kind == ChooseNotice || c.Kind == ChooseLose {
		s += strconv.FormatUint(c.Target, 10)
	} else {
		s += HandleName(c.Target)
	}
	if c.Code != 0 {
		s += " " + strconv.Itoa(int(c.Code))
	}
	return s
}

// ErrChoice reports text that is no choice.
var ErrChoice = errors.New("sim: no such choice")

// ParseChoice is the inverse of [Choice.String]; its error wraps [ErrChoice].
func ParseChoice(s string) (Choice, error) {
	words := strings.Fields(s)
	if len(words) < 2 || len(words) > 3 {
		return Choice{}, fmt.Errorf("%w: %q: want KIND TARGET [CODE]", ErrChoice, s)
	}
	var c Choice
	for i := 1; i < numChoices; i++ {
		if choiceNames[i] == words[0] {
			c.Kind = ChoiceKind(i)
		}
	}
	var err error
	switch c.Kind {
	case 0:
		return Choice{}, fmt.Errorf("%w: kind %q: want one of %s", ErrChoice, words[0], strings.Join(choiceNames[1:], " "))
	case ChooseNotice, ChooseLose:
		c.Target, err = strconv.ParseUint(words[1], 10, 64)
	default:
		c.Target, err = ParseHandle(words[1])
	}
	if err != nil {
		return Choice{}, fmt.Errorf("%w: %w", ErrChoice, err)
	}
	if len(words) == 3 {
		n, err := strconv.ParseInt(words[2], 10, 32)
		if err != nil || n == 0 {
			return Choice{}, fmt.Errorf("%w: code %q", ErrChoice, words[2])
		}
		c.Code = backend.Code(n)
	}
	return c, nil
}

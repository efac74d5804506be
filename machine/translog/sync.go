package translog

import (
	"errors"
	"os"
	"syscall"
)

// cannotSync reports whether the sink is of a kind that has nothing to make
// durable: a pipe, a terminal.
func cannotSync(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, os.ErrInvalid)
}

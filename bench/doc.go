// Package bench measures Runfence beside the state machine libraries that Go
// programs use most, doing the same work in the same run. It has only tests:
//
//	go test -run '^$' -bench . -benchmem
//
// prints Go's usual lines and then a table that holds each workload against
// what it must reach. See README.md for how to read it.
package bench

module github.com/runfence/runfence/bench

go 1.26.0

require (
	github.com/looplab/fsm v1.0.3
	github.com/qmuntal/stateless v1.7.2
	github.com/runfence/runfence v0.0.0
	github.com/stretchr/testify v1.11.1
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/valyala/fastjson v1.6.10 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/runfence/runfence => ../

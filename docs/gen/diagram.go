package main

import "github.com/runfence/runfence/machine"

func diagram(d *machine.Definition) (string, error) { return "stateDiagram-v2", nil }

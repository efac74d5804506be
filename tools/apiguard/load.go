package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

// load type-checks every package of the module in dir that others can import.
func load(dir string) (*apidiff.Module, error) {
	path, err := modulePath(dir)
	if err != nil {
		return nil, err
	}
	found, err := packages.Load(&packages.Config{
		Dir:  dir,
		Env:  append(os.Environ(), "GOWORK=off"),
		Mode: packages.NeedName | packages.NeedTypes,
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", dir, err)
	}
	m := &apidiff.Module{Path: path}
	var bad []error
	for _, p := range found {
		for _, e := range p.Errors {
			bad = append(bad, e)
		}
		if p.Name != "main" && !internal(p.PkgPath) {
			m.Packages = append(m.Packages, p.Types)
		}
	}
	return m, errors.Join(bad...)
}

func internal(path string) bool {
	return slices.Contains(strings.Split(path, "/"), "internal")
}

package promela

import (
	"fmt"
	"os"
	"strings"
)

// What was measured stands between these in a page.
const (
	sectionBegins = "<!-- measured: begin -->\n"
	sectionEnds   = "<!-- measured: end -->\n"
)

// WriteSection puts a section into a page, in place of what stands between its
// marks.
func WriteSection(page, section string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(old), sectionBegins)
	_, after, ends := strings.Cut(rest, sectionEnds)
	if !begins || !ends {
		return fmt.Errorf("%s: no lines %q and %q", page, strings.TrimSpace(sectionBegins), strings.TrimSpace(sectionEnds))
	}
	return os.WriteFile(page, []byte(before+sectionBegins+"\n"+section+"\n"+sectionEnds+after), 0o666)
}

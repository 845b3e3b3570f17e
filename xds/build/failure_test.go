package build

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestReferenceListsEveryError(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []failure{modelNotFound, pathNotFound, invalidRequest, bodyTooLarge, noCapacity, noHealthy, unsatisfiable, unknownLocation} {
		if row := fmt.Sprintf("| `%s` | %d |", f.code, f.status); !strings.Contains(string(reference), row) {
			t.Errorf("docs/reference/errors.md has no row %s", row)
		}
		var body struct {
			Error struct{ Message, Type, Code string }
		}
		if err := json.Unmarshal([]byte(f.body()), &body); err != nil || body.Error.Code != f.code || body.Error.Message == "" || body.Error.Type == "" {
			t.Errorf("%s: body %s", f.code, f.body())
		}
	}
}

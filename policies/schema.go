package policies

import _ "embed"

//go:generate go test -run TestSchemaIsUpToDate -update .
//go:embed schema/meridian.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of one policy document, for editors. It says what one document can say of
// itself; what only the whole set can tell, such as a dangling reference, is for Parse.
func Schema() []byte { return schema }

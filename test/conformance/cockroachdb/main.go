// Parses SQL statements by the parser of CockroachDB. Reads a JSON array of statements from stdin, and prints a JSON array of the
// errors.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/cockroachdb/cockroachdb-parser/pkg/sql/parser"
)

func main() {
	var statements []string
	if err := json.NewDecoder(os.Stdin).Decode(&statements); err != nil {
		log.Fatal(err)
	}
	errors := []string{}
	for _, statement := range statements {
		if _, err := parser.Parse(statement); err != nil {
			errors = append(errors, statement+": "+err.Error())
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(errors); err != nil {
		log.Fatal(err)
	}
}

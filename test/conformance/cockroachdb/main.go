// Parses queries by the parser of CockroachDB. Reads a JSON array of queries from stdin, and prints a JSON array of the errors. A
// query without exactly one statement is an error.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/cockroachdb/cockroachdb-parser/pkg/sql/parser"
)

func main() {
	var queries []string
	if err := json.NewDecoder(os.Stdin).Decode(&queries); err != nil {
		log.Fatal(err)
	}
	errors := []string{}
	for _, query := range queries {
		statements, err := parser.Parse(query)
		if err == nil && len(statements) != 1 {
			err = fmt.Errorf("%d statements in one query", len(statements))
		}
		if err != nil {
			errors = append(errors, query+": "+err.Error())
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(errors); err != nil {
		log.Fatal(err)
	}
}

// Holds requests, and the answers of a running server to them, against an OpenAPI document: `validate DOCUMENT URL`
// reads the requests from stdin and prints what libopenapi-validator finds, both as JSON.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/errors"
)

type request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// What was found in a request and in its answer. Nothing was found in an empty list.
type verdict struct {
	Status   int      `json:"status"`
	Request  []string `json:"request"`
	Response []string `json:"response"`
}

type report struct {
	Document []string  `json:"document"`
	Verdicts []verdict `json:"verdicts"`
}

func main() {
	log.SetFlags(0)
	text := must(os.ReadFile(os.Args[1]))
	rules, errs := validator.NewValidator(must(libopenapi.NewDocument(text)))
	if len(errs) > 0 {
		log.Fatal(errs)
	}
	var requests []request
	check(json.NewDecoder(os.Stdin).Decode(&requests))

	_, found := rules.ValidateDocument()
	result := report{Document: sentences(found), Verdicts: []verdict{}}
	for _, each := range requests {
		result.Verdicts = append(result.Verdicts, judge(rules, os.Args[2], each))
	}
	check(json.NewEncoder(os.Stdout).Encode(result))
}

func judge(rules validator.Validator, url string, sent request) verdict {
	_, inRequest := rules.ValidateHttpRequest(build(url, sent))
	response := must(http.DefaultClient.Do(build(url, sent)))
	defer response.Body.Close()
	_, inResponse := rules.ValidateHttpResponse(build(url, sent), response)
	return verdict{response.StatusCode, sentences(inRequest), sentences(inResponse)}
}

// The validator reads a request's body, so each use has a request of its own.
func build(url string, sent request) *http.Request {
	built := must(http.NewRequest(sent.Method, url+sent.Path, strings.NewReader(sent.Body)))
	for name, value := range sent.Headers {
		built.Header.Set(name, value)
	}
	return built
}

func sentences(found []*errors.ValidationError) []string {
	said := []string{}
	for _, each := range found {
		said = append(said, each.Message+": "+each.Reason)
		for _, failure := range each.SchemaValidationErrors {
			said = append(said, failure.Reason)
		}
	}
	return said
}

func must[Value any](value Value, err error) Value {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

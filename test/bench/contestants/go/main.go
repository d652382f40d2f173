// Plants with net/http and mattn/go-sqlite3. Started as `plantstore-go DATABASE`; prints its port. Readers are a pool. One
// writer is behind a mutex.
package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

const bodyBytesMax = 64 << 10

type plant struct {
	Name *string `json:"name"`
	Tag  *string `json:"tag,omitempty"`
}

type newPlant struct {
	ID *int64 `json:"id"`
	plant
}

// An error that is an answer. Its first three digits are the status.
type failure struct {
	Code    int    `json:"error"`
	Message string `json:"message"`
}

func (f failure) Error() string { return f.Message }

var (
	badParameter = failure{40003, "`limit` and `after` must be whole numbers."}
	badPlant     = failure{40002, "This is not a plant."}
	invalidToken = failure{40102, "The token is not valid."}
	readOnly     = failure{40301, "The token may only read."}
	plantExists  = failure{40901, "There is a plant with this id already."}
	bug          = failure{50000, "Something went wrong."}
)

type caller struct {
	userID int64
	scope  string
}

type service struct {
	findCaller, listPlants *sql.Stmt
	writing                sync.Mutex
	insertPlant            *sql.Stmt
}

func (s *service) authenticate(r *http.Request) (caller, error) {
	var found caller
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return found, invalidToken
	}
	hash := sha256.Sum256([]byte(strings.TrimSpace(token)))
	err := s.findCaller.QueryRow(hash[:], time.Now().UnixMilli()).Scan(&found.userID, &found.scope)
	if errors.Is(err, sql.ErrNoRows) {
		return found, invalidToken
	}
	return found, err
}

func (s *service) list(_ http.ResponseWriter, r *http.Request, by caller) (any, error) {
	query := r.URL.Query()
	limit, limitErr := wholeNumber(query.Get("limit"), -1)
	after, afterErr := wholeNumber(query.Get("after"), math.MinInt64)
	if limitErr != nil || afterErr != nil {
		return nil, badParameter
	}
	rows, err := s.listPlants.Query(by.userID, after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	plants := []plant{}
	for rows.Next() {
		var next plant
		if err := rows.Scan(&next.Name, &next.Tag); err != nil {
			return nil, err
		}
		plants = append(plants, next)
	}
	return plants, rows.Err()
}

func (s *service) create(w http.ResponseWriter, r *http.Request, by caller) (any, error) {
	if by.scope != "write" {
		return nil, readOnly
	}
	var sent newPlant
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyBytesMax)).Decode(&sent)
	if err != nil || sent.ID == nil || sent.Name == nil {
		return nil, badPlant
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	result, err := s.insertPlant.Exec(by.userID, *sent.ID, *sent.Name, sent.Tag)
	if err != nil {
		return nil, err
	}
	created, err := result.RowsAffected()
	if err == nil && created == 0 {
		err = plantExists
	}
	return sent.plant, err
}

type handler func(http.ResponseWriter, *http.Request, caller) (any, error)

// Calls a handler with the user of the bearer token, and answers with its result.
func (s *service) authenticated(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body any
		by, err := s.authenticate(r)
		if err == nil {
			body, err = handle(w, r, by)
		}
		status := http.StatusOK
		if err != nil {
			known := bug
			if !errors.As(err, &known) {
				log.Print(err)
			}
			body, status = known, known.Code/100
		}
		text, err := json.Marshal(body)
		if err != nil {
			log.Print(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="plantstore", error="invalid_token"`)
		}
		w.WriteHeader(status)
		w.Write(text)
	}
}

func wholeNumber(text string, missing int64) (int64, error) {
	if text == "" {
		return missing, nil
	}
	return strconv.ParseInt(text, 10, 64)
}

// Opens a pool whose connections all stay open.
func open(path, mode string, connections int) *sql.DB {
	settings := "_journal_mode=wal&_synchronous=full&_foreign_keys=on&_busy_timeout=5000&_mutex=no&mode=" + mode
	db := must(sql.Open("sqlite3", "file:"+path+"?"+settings))
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	writer := open(os.Args[1], "rw", 1)
	readers := open(os.Args[1], "ro", max(4, runtime.NumCPU()))
	s := &service{
		insertPlant: must(writer.Prepare(
			`insert into plants (user_id, id, name, tag) values (?1, ?2, ?3, ?4) on conflict do nothing`)),
		findCaller: must(readers.Prepare(
			`select users.id, tokens.scope
			from tokens join users on users.id = tokens.user_id
			where tokens.hash = ?1 and tokens.revoked_at_ms is null
				and (tokens.expires_at_ms is null or tokens.expires_at_ms > ?2)`)),
		listPlants: must(readers.Prepare(
			`select name, tag from plants where user_id = ?1 and id > ?2 order by id limit ?3`)),
	}
	http.HandleFunc("GET /plants", s.authenticated(s.list))
	http.HandleFunc("POST /plants", s.authenticated(s.create))
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, nil))
}

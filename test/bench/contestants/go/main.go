// Plants with net/http and mattn/go-sqlite3. Started as `plantstore-go DATABASE`; prints its port. Readers are a pool. One
// writer is behind a mutex.
package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

const bodyBytesMax = 64 << 10

const (
	findCaller = `select users.id, tokens.scope
		from tokens join users on users.id = tokens.user_id
		where tokens.hash = ?1 and tokens.revoked_at_ms is null
			and (tokens.expires_at_ms is null or tokens.expires_at_ms > ?2)`
	listPlants  = `select name, tag from plants where user_id = ?1 and id > ?2 order by id limit ?3`
	insertPlant = `insert into plants (user_id, id, name, tag) values (?1, ?2, ?3, ?4) on conflict do nothing`
)

type plant struct {
	Name *string `json:"name"`
	Tag  *string `json:"tag,omitempty"`
}

type newPlant struct {
	ID *int64 `json:"id"`
	plant
}

type failure struct {
	Error   int32  `json:"error"`
	Message string `json:"message"`
}

type caller struct {
	userID int64
	scope  string
}

type service struct {
	findCaller, listPlants *sql.Stmt
	writing                sync.Mutex
	insertPlant            *sql.Stmt
}

// Calls the handler with the user of the bearer token.
func (s *service) authenticated(handle func(http.ResponseWriter, *http.Request, caller)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		hash := sha256.Sum256([]byte(strings.TrimSpace(token)))
		var found caller
		err := s.findCaller.QueryRow(hash[:], time.Now().UnixMilli()).Scan(&found.userID, &found.scope)
		switch {
		case err == sql.ErrNoRows || !strings.EqualFold(scheme, "bearer"):
			w.Header().Set("WWW-Authenticate", `Bearer realm="plantstore", error="invalid_token"`)
			answer(w, http.StatusUnauthorized, failure{40102, "The token is not valid."})
		case err != nil:
			answerBug(w, err)
		default:
			handle(w, r, found)
		}
	}
}

func (s *service) list(w http.ResponseWriter, r *http.Request, by caller) {
	query := r.URL.Query()
	limit, limitErr := wholeNumber(query, "limit", -1)
	after, afterErr := wholeNumber(query, "after", math.MinInt64)
	if limitErr != nil || afterErr != nil {
		answer(w, http.StatusBadRequest, failure{40003, "`limit` and `after` must be whole numbers."})
		return
	}
	rows, err := s.listPlants.Query(by.userID, after, limit)
	if err != nil {
		answerBug(w, err)
		return
	}
	defer rows.Close()
	plants := []plant{}
	for rows.Next() {
		var next plant
		if err := rows.Scan(&next.Name, &next.Tag); err != nil {
			answerBug(w, err)
			return
		}
		plants = append(plants, next)
	}
	if err := rows.Err(); err != nil {
		answerBug(w, err)
		return
	}
	answer(w, http.StatusOK, plants)
}

func (s *service) create(w http.ResponseWriter, r *http.Request, by caller) {
	if by.scope != "write" {
		answer(w, http.StatusForbidden, failure{40301, "The token may only read."})
		return
	}
	var sent newPlant
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyBytesMax)).Decode(&sent)
	if err != nil || sent.ID == nil || sent.Name == nil {
		answer(w, http.StatusBadRequest, failure{40002, "This is not a plant."})
		return
	}
	created, err := s.insert(by.userID, sent)
	switch {
	case err != nil:
		answerBug(w, err)
	case created == 0:
		answer(w, http.StatusConflict, failure{40901, "There is a plant with this id already."})
	default:
		answer(w, http.StatusOK, sent.plant)
	}
}

func (s *service) insert(userID int64, sent newPlant) (int64, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	result, err := s.insertPlant.Exec(userID, *sent.ID, *sent.Name, sent.Tag)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func wholeNumber(query url.Values, name string, missing int64) (int64, error) {
	if !query.Has(name) {
		return missing, nil
	}
	return strconv.ParseInt(query.Get(name), 10, 64)
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		log.Print(err)
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(text)
}

func answerBug(w http.ResponseWriter, err error) {
	log.Print(err)
	answer(w, http.StatusInternalServerError, failure{50000, "Something went wrong."})
}

// Opens a pool whose connections all stay open.
func open(path, mode string, connections int) *sql.DB {
	settings := "_journal_mode=wal&_synchronous=full&_foreign_keys=on&_busy_timeout=5000&_mutex=no&mode=" + mode
	db, err := sql.Open("sqlite3", "file:"+path+"?"+settings)
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

func prepare(db *sql.DB, text string) *sql.Stmt {
	statement, err := db.Prepare(text)
	if err != nil {
		log.Fatal(err)
	}
	return statement
}

func main() {
	writer := open(os.Args[1], "rw", 1)
	insert := prepare(writer, insertPlant)
	readers := open(os.Args[1], "ro", max(4, runtime.NumCPU()))
	s := &service{
		findCaller:  prepare(readers, findCaller),
		listPlants:  prepare(readers, listPlants),
		insertPlant: insert,
	}
	http.HandleFunc("GET /plants", s.authenticated(s.list))
	http.HandleFunc("POST /plants", s.authenticated(s.create))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, nil))
}

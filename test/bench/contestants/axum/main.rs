//! Plants with axum and rusqlite. Started as `plantstore-axum DATABASE`; prints its port. Each thread that answers requests
//! has a reader of its own. One writer is behind a mutex, on tokio's threads for blocking work.

use std::env;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{DefaultBodyLimit, FromRequestParts, Json, Query, State};
use axum::http::{StatusCode, header, request::Parts};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::serve::ListenerExt;
use axum::{Router, routing::get};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const BODY_BYTES_MAX: usize = 64 * 1024;
const FIND_CALLER: &str = "select users.id, tokens.scope
    from tokens join users on users.id = tokens.user_id
    where tokens.hash = ?1 and tokens.revoked_at_ms is null
      and (tokens.expires_at_ms is null or tokens.expires_at_ms > ?2)";
const LIST_PLANTS: &str = "select name, tag from plants where user_id = ?1 and id > ?2 order by id limit ?3";
const INSERT_PLANT: &str = "insert into plants (user_id, id, name, tag) values (?1, ?2, ?3, ?4) on conflict do nothing";

static DATABASE: LazyLock<String> = LazyLock::new(|| env::args().nth(1).expect("usage: plantstore-axum DATABASE"));

thread_local! {
    static READER: Connection = open(OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a reader");
}

type Writer = Arc<Mutex<Connection>>;

#[derive(Deserialize)]
struct NewPlant {
    id: i64,
    name: String,
    tag: Option<String>,
}

#[derive(Serialize)]
struct Plant {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    limit: Option<u32>,
    after: Option<i64>,
}

struct Caller {
    user_id: i64,
    can_write: bool,
}

/// The first three digits of a code are the status.
#[derive(Serialize)]
struct Failure {
    error: u16,
    message: &'static str,
}

const INVALID_TOKEN: Failure = Failure { error: 40102, message: "The token is not valid." };
const READ_ONLY: Failure = Failure { error: 40301, message: "The token may only read." };
const PLANT_EXISTS: Failure = Failure { error: 40901, message: "There is a plant with this id already." };
const BUG: Failure = Failure { error: 50000, message: "Something went wrong." };

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.error / 100).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let challenge = (status == StatusCode::UNAUTHORIZED)
            .then_some([(header::WWW_AUTHENTICATE, r#"Bearer realm="plantstore", error="invalid_token""#)]);
        (status, challenge.map(AppendHeaders), Json(self)).into_response()
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        eprintln!("{error}");
        BUG
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let value = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (scheme, token) = value.and_then(|value| value.split_once(' ')).ok_or(INVALID_TOKEN)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(INVALID_TOKEN);
        }
        let hash = Sha256::digest(token.trim());
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|_| BUG)?.as_millis() as i64;
        READER.with(|reader| {
            reader
                .prepare_cached(FIND_CALLER)?
                .query_row(params![&hash[..], now_ms], |row| {
                    let can_write = row.get_ref(1)?.as_str()? == "write";
                    Ok(Caller { user_id: row.get(0)?, can_write })
                })
                .optional()?
                .ok_or(INVALID_TOKEN)
        })
    }
}

async fn list(caller: Caller, Query(page): Query<Page>) -> Result<Json<Vec<Plant>>, Failure> {
    let (after, limit) = (page.after.unwrap_or(i64::MIN), page.limit.map_or(-1, i64::from));
    READER.with(|reader| {
        let mut statement = reader.prepare_cached(LIST_PLANTS)?;
        let rows = statement.query_map(params![caller.user_id, after, limit], |row| {
            Ok(Plant { name: row.get(0)?, tag: row.get(1)? })
        })?;
        Ok(Json(rows.collect::<Result<_, _>>()?))
    })
}

async fn create(
    State(writer): State<Writer>,
    Caller { user_id, can_write }: Caller,
    Json(NewPlant { id, name, tag }): Json<NewPlant>,
) -> Result<Json<Plant>, Failure> {
    if !can_write {
        return Err(READ_ONLY);
    }
    let insert = move || {
        let writer = writer.lock().map_err(|_| BUG)?;
        let mut statement = writer.prepare_cached(INSERT_PLANT)?;
        match statement.execute(params![user_id, id, name, tag])? {
            0 => Err(PLANT_EXISTS),
            _ => Ok(Json(Plant { name, tag })),
        }
    };
    tokio::task::spawn_blocking(insert).await.map_err(|_| BUG)?
}

fn open(access: OpenFlags) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(&*DATABASE, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.pragma_update(None, "synchronous", "full")?;
    db.pragma_update(None, "foreign_keys", "on")?;
    Ok(db)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let writer = open(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    writer.pragma_update(None, "journal_mode", "wal")?;
    let app = Router::new()
        .route("/plants", get(list).post(create))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(Arc::new(Mutex::new(writer)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    axum::serve(listener.tap_io(|socket| drop(socket.set_nodelay(true))), app).await?;
    Ok(())
}

// Tested in test/store/postgres/lost-connection.test.ts.
import { SQL } from 'bun'
import type { PostgresAddress } from '../../database-url.ts'
import { type DatabaseAccess, STORE_DEADLINES, type StoreDeadlines } from '../database.ts'

/** How long the server may take to accept a connection. Later it counts as unreachable. */
const CONNECT_TIMEOUT_S = 2

// A session that began while the database was read-only stays so. And the driver may be wrong about what a session has prepared.
const STALE_SESSION = /^(?:25006|42P05|26000)$/
/** How often a client takes new sessions at most, because a database may be read-only for hours. */
export const RENEW_MIN_MS = 1000

/** The server shows all connections of this program under this name. */
export const APPLICATION_NAME = 'plantstore'

export interface ConnectionOptions extends DatabaseAccess {
  readonly address: PostgresAddress
}

/** A parameter that is an array of the database. */
class Column {
  constructor(
    readonly type: 'int8' | 'text',
    readonly values: readonly (string | number | bigint | null | undefined)[],
  ) {}
}
/** Lists of values as parameters. A missing value is null. */
export const columns = (type: Column['type'], ...lists: readonly Column['values'][]): Column[] =>
  lists.map((values) => new Column(type, values))
/**
 * An array parameter in the text of a statement. The planner does not see its length and takes it for 10, so PostgreSQL keeps the
 * plan. If it saw the length, a plan for this length would always look cheaper, and it would plan each statement anew.
 */
export const arrayParameter = (number: number, type: Column['type']): string => `(select $${number}::${type}[])`
export type Parameter = string | number | bigint | boolean | Uint8Array | Column | null

/** Runs one statement. A row has its values by the names of the columns. Rejects with the driver's error or `AnswerTimeout`. */
export type Query = <Row>(text: string, parameters?: readonly Parameter[]) => Promise<readonly Row[]>

/** One or several connections. Each is made when a statement needs it, and made again after it was lost. */
export interface Client {
  /** A `Query` with a timeout, which is that of the client if left out. */
  query<Row>(text: string, parameters?: readonly Parameter[], timeoutMs?: number): Promise<readonly Row[]>
  /** Does all of the work within this time, or nothing. Each statement sees what was committed while the one before it waited. */
  transaction<T>(work: (query: Query) => Promise<T>, timeoutMs?: number): Promise<T>
  /** Closes the connections. Statements that have no answer yet reject, but for those of sessions that others have replaced. */
  close(): Promise<void>
}

/** The server did not answer a statement in time. It may still execute the statement. */
export class AnswerTimeout extends Error {
  override readonly name = 'AnswerTimeout'
}

/** The SQLSTATE that the server sent, or an empty text. */
export const sqlState = (error: unknown): string =>
  error instanceof Error && 'errno' in error && typeof error.errno === 'string' ? error.errno : ''

/** Prepares so many connections. The server may take `answerMs` for a statement or a transaction. */
export function createClient(
  options: ConnectionOptions,
  connections: number,
  { answerMs }: Pick<StoreDeadlines, 'answerMs'> = STORE_DEADLINES,
): Client {
  let pool = createPool(options, connections)
  let renewedAtMs = Number.NEGATIVE_INFINITY

  /** Takes new sessions for later statements. The old ones end when those that they have are answered. */
  const renew = (used: SQL) => {
    if (pool !== used || performance.now() - renewedAtMs < RENEW_MIN_MS) return
    renewedAtMs = performance.now()
    pool = createPool(options, connections)
    void used.close()
  }
  /** A server that does not answer blocks its connections. After the timeout it gets other connections. */
  const answered = async <T>(work: Promise<T>, limitMs: number): Promise<T> => {
    const used = pool
    // The rest of a caller's time may be negative.
    const timeoutMs = Math.max(0, Math.round(limitMs))
    const timeout = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      if (pool === used) pool = createPool(options, connections)
      void used.close({ timeout: 0 })
      timeout.reject(new AnswerTimeout(`the database did not answer within ${timeoutMs} ms`))
    }, timeoutMs)
    try {
      return await Promise.race([work, timeout.promise])
    } catch (error) {
      if (STALE_SESSION.test(sqlState(error))) renew(used)
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    query: <Row>(text: string, parameters?: readonly Parameter[], timeoutMs = answerMs) =>
      answered(queryWith(pool)<Row>(text, parameters), timeoutMs),
    transaction: <T>(work: (query: Query) => Promise<T>, timeoutMs = answerMs) =>
      answered(
        pool.begin('isolation level read committed', (transaction) => work(queryWith(transaction))),
        timeoutMs,
      ),
    close: () => pool.close({ timeout: 0 }),
  }
}

const queryWith =
  (sql: SQL): Query =>
  async <Row>(text: string, parameters: readonly Parameter[] = []) => {
    const bound = parameters.map((each) => (each instanceof Column ? sql.array([...each.values], each.type) : each))
    // The caller names the types of the columns. With this comment, Pgpool-II asks no standby, which may lack the latest writes.
    return (await sql.unsafe(`/*NO LOAD BALANCE*/${text}`, bound)) as Row[]
  }

/** Sets every option: the driver takes others from environment variables, such as DATABASE_URL or PGSSLMODE. */
function createPool({ address, passwordFile, preparesNothing = false }: ConnectionOptions, connections: number): SQL {
  const { user, password, host, port, database, sslMode, caPath, channelBinding } = address
  return new SQL({
    // With a file of authorities, only the URL can tell verify-ca from verify-full.
    url: `postgres://localhost/?sslmode=${sslMode}`,
    adapter: 'postgres',
    ...(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { hostname: host, port }),
    username: user,
    password: () => (passwordFile === undefined ? password : readPassword(passwordFile)),
    database,
    tls: sslMode.startsWith('verify-')
      ? { rejectUnauthorized: true, ...(caPath !== undefined && { ca: Bun.file(caPath) }) }
      : sslMode,
    channelBinding,
    bigint: true,
    prepare: !preparesNothing,
    max: connections,
    idleTimeout: 0,
    maxLifetime: 0,
    connectionTimeout: CONNECT_TIMEOUT_S,
    connection: { application_name: APPLICATION_NAME, client_encoding: 'UTF8' },
  })
}

/** The text of the file without its newline. A second one would be a part of the password, and no editor shows it. */
async function readPassword(path: string): Promise<string> {
  const password = (await Bun.file(path).text()).replace(/\r?\n$/, '')
  if (!/[\r\n]/.test(password)) return password
  throw Object.assign(new Error(`the file ${path} must have one line, the password`), { code: 'INVALID_PASSWORD_FILE' })
}

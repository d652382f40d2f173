import { SQL, type TransactionSQL } from 'bun'
import type { PostgresAddress } from '../../domain/database-url.ts'

/** How long the server may take to let a connection in, and to answer a statement. After that it counts as unreachable. */
const CONNECT_TIMEOUT_S = 2
const ANSWER_TIMEOUT_MS = 5000

/** Under what name the server knows all connections of ours. */
export const APPLICATION_NAME = 'plantstore'

/** Whoever connects: to what, how to prove who it is, and whether statements are prepared once per connection. */
export interface ConnectionOptions {
  readonly address: PostgresAddress
  /** A file whose text is the password, instead of what the URL says. It is read for every connection. */
  readonly passwordFile: string | undefined
  readonly prepares: boolean
}

/** A column of values for one statement, as an array of the database's. */
export type Column = ReturnType<SQL['array']>
export type Parameter = string | number | bigint | boolean | Uint8Array | Column | null

/** The statements of one transaction, one after the other. */
export interface Transaction {
  query<Row>(text: string, parameters?: readonly Parameter[]): Promise<readonly Row[]>
  /** Several statements without parameters. */
  run(script: string): Promise<void>
}

/** One or several connections, made when they are needed, and again when they were lost. */
export interface Client {
  /** Runs one statement; the columns decide the shape of its rows. Rejects with what the driver says, or `Unanswered`. */
  query<Row>(text: string, parameters?: readonly Parameter[], timeoutMs?: number): Promise<readonly Row[]>
  /** Does all of it or nothing, within this time. */
  transaction<T>(work: (transaction: Transaction) => Promise<T>, timeoutMs?: number): Promise<T>
  column(values: readonly (string | null)[], type: 'text'): Column
  column(values: readonly (number | bigint | null)[], type: 'int8'): Column
  /** Ends the connections that there are: what is under way rejects. */
  close(): Promise<void>
}

/** No answer came in time, and none will be waited for: nobody knows what becomes of the statement. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered'
}

/** Opens nothing yet. */
export function createClient(options: ConnectionOptions, connections: number): Client {
  let sql = connect(options, connections)

  /** A server that does not answer keeps its connections busy: they are given up, and others made. */
  const answered = async <T>(work: Promise<T>, limitMs: number): Promise<T> => {
    const used = sql
    // What is left of a longer time may be nothing.
    const timeoutMs = Math.max(0, Math.round(limitMs))
    const timeout = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      if (sql === used) sql = connect(options, connections)
      void used.close({ timeout: 0 })
      timeout.reject(new Unanswered(`the database did not answer within ${timeoutMs} ms`))
    }, timeoutMs)
    try {
      return await Promise.race([work, timeout.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    query: (text, parameters = [], timeoutMs = ANSWER_TIMEOUT_MS) => answered(rowsOf(sql, text, parameters), timeoutMs),
    transaction: (work, timeoutMs = ANSWER_TIMEOUT_MS) =>
      answered(
        sql.begin((transaction) => work(inTransaction(transaction))),
        timeoutMs,
      ),
    column: (values: readonly unknown[], type: 'text' | 'int8') => sql.array([...values], type),
    close: () => sql.close({ timeout: 0 }),
  }
}

const inTransaction = (transaction: TransactionSQL): Transaction => ({
  query: (text, parameters = []) => rowsOf(transaction, text, parameters),
  run: async (script) => void (await transaction.unsafe(script).simple()),
})

/** As arrays, like those of the twin. */
const rowsOf = async <Row>(sql: SQL, text: string, parameters: readonly Parameter[]): Promise<readonly Row[]> =>
  (await sql.unsafe(text, [...parameters]).values()) as Row[]

/** Everything is said here: what is not would be taken from variables of the environment, like DATABASE_URL or PGSSLMODE. */
function connect({ address, passwordFile, prepares }: ConnectionOptions, connections: number): SQL {
  const { user, password, host, port, database, sslMode, caPath } = address
  return new SQL({
    // The only way to tell verify-ca from verify-full where there is a file of authorities.
    url: `postgres://localhost/?sslmode=${sslMode}`,
    adapter: 'postgres',
    ...(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { hostname: host, port }),
    username: user,
    password: () => (passwordFile === undefined ? password : readPassword(passwordFile)),
    database,
    tls: sslMode.startsWith('verify-')
      ? { rejectUnauthorized: true, ...(caPath !== undefined && { ca: Bun.file(caPath) }) }
      : sslMode,
    channelBinding: 'prefer',
    bigint: true,
    prepare: prepares,
    max: connections,
    idleTimeout: 0,
    maxLifetime: 0,
    connectionTimeout: CONNECT_TIMEOUT_S,
    connection: { application_name: APPLICATION_NAME, client_encoding: 'UTF8' },
  })
}

/** The text of the file without the end of its line. */
const readPassword = async (path: string): Promise<string> => (await Bun.file(path).text()).replace(/\r?\n$/, '')

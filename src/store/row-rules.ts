import { TIME_MAX_MS, USER_NAME_CHARACTERS, USER_NAME_LENGTH_MAX, USER_NAME_RULE } from '../domain/token.ts'

/** A rule in words, and the SQL that continues a column which breaks it. */
interface Rule {
  readonly words: string
  readonly isBrokenBy: (column: string) => string
}

const between = (first: number, last: number): Rule => ({
  words: `between ${first} and ${last}`,
  isBrokenBy: (column) => `${column} not between ${first} and ${last}`,
})

const TIME = between(-TIME_MAX_MS, TIME_MAX_MS)
const IDENTIFIER = between(1, Number.MAX_SAFE_INTEGER)
const NAME: Rule = {
  words: USER_NAME_RULE,
  // Nothing is left of a name after `trim` if all its characters may be in a name.
  isBrokenBy: (column) =>
    `(trim(${column}, '${USER_NAME_CHARACTERS}') <> '' or octet_length(${column}) not between 1 and ${USER_NAME_LENGTH_MAX})`,
}

/** The rules that no database enforces. A null keeps each of them. */
const RULES = {
  users: { id: IDENTIFIER, name: NAME, created_at_ms: TIME, blocked_at_ms: TIME },
  tokens: { id: IDENTIFIER, created_at_ms: TIME, expires_at_ms: TIME, revoked_at_ms: TIME, last_used_at_ms: TIME },
}

/** A statement about a column finds at most so many rows, as `pragma integrity_check` does, and shows so many characters of a value. */
export const FOUND_MAX = 100
const SHOWN_LENGTH = 100

/**
 * Statements for every database that find the rows which belong to no user or break a rule: a line for each row and rule. `prefix`
 * stands before the names of the tables. They leave out a column that its table does not have.
 */
export const findRuleBreaks = (prefix: string, hasColumn = (_table: string, _column: string) => true) => [
  ...['tokens', 'plants'].map(
    (table) => `select 'a row of ${table} belongs to no user' from ${prefix}${table}
      where not exists (select 1 from ${prefix}users where users.id = ${table}.user_id)`,
  ),
  ...Object.entries(RULES).flatMap(([table, rules]) =>
    Object.entries<Rule>(rules)
      .filter(([column]) => hasColumn(table, column))
      .map(
        ([column, { words, isBrokenBy }]) =>
          `select '${table.slice(0, -1)} ' || cast(id as text) || ': ${column} "' ||
             substr(cast(${column} as text), 1, ${SHOWN_LENGTH}) || '" is not ${words}'
           from ${prefix}${table} where ${isBrokenBy(column)} limit ${FOUND_MAX}`,
      ),
  ),
]

import { AppError } from '../domain/error.ts'
import { parseInt64Decimal } from '../domain/int64.ts'
import { LIMIT_MAX } from '../domain/store.ts'

const LIMIT = /^(?:0|[1-9][0-9]{0,9})$/
/** What most ask: there is nothing to decode, and nothing that could be given twice. */
const LIMIT_ALONE = /^limit=(0|[1-9][0-9]{0,8})$/

/** What a client asks of a list: from where, and how much. */
export interface ListQuery {
  readonly limit: number | undefined
  readonly after: bigint | undefined
}

/** Reads the query string of a list. Rejects with `query_invalid`; other parameters are ignored. */
export function parseListQuery(url: string): ListQuery {
  const start = url.indexOf('?')
  if (start === -1) return { limit: undefined, after: undefined }
  const limit = LIMIT_ALONE.exec(url.slice(start + 1))?.[1]
  if (limit !== undefined) return { limit: Number(limit), after: undefined }
  // With its question mark: the constructor drops one, and a second belongs to a name.
  const query = new URLSearchParams(url.slice(start))
  return {
    limit: parseOnce(query, 'limit', parseLimit, `a whole decimal number from 0 to ${LIMIT_MAX}`),
    after: parseOnce(query, 'after', parseInt64Decimal, 'the id of a plant as a decimal int64'),
  }
}

function parseLimit(text: string): number | undefined {
  const limit = LIMIT.test(text) ? Number(text) : undefined
  return limit !== undefined && limit <= LIMIT_MAX ? limit : undefined
}

function parseOnce<T>(
  query: URLSearchParams,
  name: string,
  parse: (text: string) => T | undefined,
  rule: string,
): T | undefined {
  const [text, ...more] = query.getAll(name)
  if (text === undefined) return undefined
  const value = more.length === 0 ? parse(text) : undefined
  if (value === undefined) throw new AppError('query_invalid', { message: `\`${name}\` must be ${rule}, given once.` })
  return value
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildGo } from './go.ts'
import { HERE, runWell } from './tools.ts'

/** The errors that libopenapi-validator finds in a document, in requests, and in answers. */
interface Report {
  readonly document: readonly string[]
  readonly verdicts: readonly { status: number; request: readonly string[]; response: readonly string[] }[]
}

interface Request {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** A request, its expected status, and whether the request violates the document. */
type Case = readonly [request: Request, status: number, isWrong: boolean]

/**
 * Requests to an empty server, in order. They break every rule of the document that a client can break. A line of requests.txt has
 * the status, `!` if the request violates the document, whose token it has, and the request with further headers behind it.
 */
export function casesWith(token: string): readonly Case[] {
  const text = readFileSync(join(HERE, 'libopenapi/requests.txt'), 'utf8')
  return text
    .split(/\n(?! )/)
    .filter((row) => row !== '')
    .map((row) => {
      const [line = '', ...lines] = row.split('\n')
      const [, status, mark, who, method = '', path = '', body] =
        /^(\d+) ([ !]) (\w+)> (\S+) (\S+)(?: (.*))?$/.exec(line) ?? []
      const headers = {
        authorization: `Bearer ${who === 'me' ? token : 'nobody'}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...Object.fromEntries(lines.map((each) => each.trim().split(': '))),
      }
      const long = body?.replace(/\{(\d+)\*(\w+)\}/, (_, count, part) => part.repeat(Number(count)))
      return [{ method, path, headers, ...(long !== undefined && { body: long }) }, Number(status), mark === '!']
    })
}

/** Sends requests to a server, and validates requests and answers by a document. */
export async function runValidator(document: string, url: string, cases: readonly Case[]): Promise<Report> {
  const program = await buildGo('libopenapi', '.')
  const input = JSON.stringify(cases.map(([request]) => request))
  return JSON.parse(await runWell([program, document, url], { input }))
}

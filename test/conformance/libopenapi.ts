import { buildGo } from './go.ts'
import { runWell } from './tools.ts'

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

/** Requests to an empty server, in order. They break every rule of the document that a client can break. */
export function casesWith(token: string): readonly Case[] {
  const caller = { authorization: `Bearer ${token}` }
  const stranger = { authorization: 'Bearer nobody' }
  const JSON_BODY = { 'content-type': 'application/json' }
  const get = (query: string, headers: Request['headers'] = caller): Request => ({
    method: 'GET',
    path: `/plants${query}`,
    headers,
  })
  const remove = (id: string, headers: Request['headers'] = caller): Request => ({
    method: 'DELETE',
    path: `/plants/${id}`,
    headers,
  })
  const post = (body: string, headers: Request['headers'] = { ...caller, ...JSON_BODY }): Request => ({
    method: 'POST',
    path: '/plants',
    headers,
    body,
  })
  return [
    [post('{"id":1,"name":"Fern","tag":"a b"}'), 200, false],
    [post('{"id":9223372036854775807,"name":"🌱"}'), 200, false],
    [post('{"id":-9223372036854775808,"name":""}'), 200, false],
    [post('{"id":1,"name":"Fern"}'), 409, false],
    [post('{"id":2,"name":"a\\u0000"}'), 400, true],
    [post('{"id":2,"name":"Fern","tag":"\\u0000"}'), 400, true],
    // Only the description of `NewPlant` excludes these two.
    [post('{"id":2,"name":"\\ud800"}'), 400, false],
    [post('{"id":9223372036854775808,"name":"Fern"}'), 400, false],
    [post('{"id":2}'), 400, true],
    [post('{"name":"Fern"}'), 400, true],
    [post('{"id":"2","name":"Fern"}'), 400, true],
    [post('{"id":2.5,"name":"Fern"}'), 400, true],
    [post('{"id":2,"name":"Fern","tag":null}'), 400, true],
    [post('[]'), 400, true],
    [post('{'), 400, true],
    [post('{"id":2,"name":"Fern"}', { ...caller, 'content-type': 'text/plain' }), 415, true],
    [post('{"id":2,"name":"Fern"}', { ...stranger, ...JSON_BODY }), 401, false],
    [post(`{"id":2,"name":"${'a'.repeat(65_536)}"}`), 413, false],
    [get(''), 200, false],
    [get('?limit=1'), 200, false],
    [get('?limit=5&after=-9223372036854775808'), 200, false],
    [get('?limit=-1'), 400, true],
    [get('?limit=2147483648'), 400, true],
    [get('?limit=x'), 400, true],
    [get('?after=9223372036854775808'), 400, true],
    [get('', stranger), 401, false],
    [get('?include=id&limit=1'), 200, false],
    [get('?include=x'), 400, true],
    [get('/1'), 200, false],
    [get('/9223372036854775807?include=id'), 200, false],
    [get('/1', { ...caller, 'if-none-match': '*' }), 304, false],
    [get('/7'), 404, false],
    [get('/x'), 400, true],
    [remove('1', { ...caller, 'if-match': '"x"' }), 412, false],
    [remove('1'), 204, false],
    [remove('1'), 404, false],
    [remove('-9223372036854775808'), 204, false],
    [remove('x'), 400, true],
    [remove('1', stranger), 401, false],
  ]
}

/** Sends requests to a server, and validates requests and answers by a document. */
export async function runValidator(document: string, url: string, cases: readonly Case[]): Promise<Report> {
  const program = await buildGo('libopenapi', '.')
  const input = JSON.stringify(cases.map(([request]) => request))
  return JSON.parse(await runWell([program, document, url], { input }))
}

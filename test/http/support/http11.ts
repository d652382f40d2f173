import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A row of the table of HTTP/1.1: the bytes to send on a connection of their own, and all answers in their order. An answer is its
 * error code, or its status where it has none; an error of three digits is the runtime's own, without a body. `next`
 * answers a request that is sent behind: without it the connection has ended.
 */
export interface Row {
  readonly name: string
  readonly sent: string
  readonly answers: string
  /** The row of docs/reference/http.md that explains an answer that differs from RFC 9110 and RFC 9112. */
  readonly listed: string
}

/** A request that must not be answered, because it is part of a body or a header. */
const HIDDEN = 'GET /healthz HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n'

/** The texts of `{…}`. Those of a plant have a new one in each row. */
const TEXTS: Readonly<Record<string, string>> = {
  get: 'GET /plants?limit=0 HTTP/1.1\\r\\n{auth}',
  chunked: '{post}Transfer-Encoding: chunked\\r\\n\\r\\n',
  post: 'POST /plants HTTP/1.1\\r\\n{auth}Content-Type: application/json\\r\\n',
  hidden: HIDDEN,
}

/** Makes bytes of the text of a row. Each plant has an id of its own, and its name has that id. */
export function requestsOf(token: string) {
  let lastId = 0
  return (text: string): string => {
    const id = lastId + 1
    const plant = `{"id":${id},"name":"p${id}"}`
    const hex = plant.length.toString(16)
    const auth = `Host: a\\r\\nAuthorization: Bearer ${token}\\r\\n`
    const texts = { ...TEXTS, plant, size: String(plant.length), hex, capitals: hex.toUpperCase(), auth }
    if (text.includes('{plant}')) lastId = id
    let expanded = text
    for (const [name, value] of Object.entries(texts)) expanded = expanded.replaceAll(`{${name}}`, value)
    const bytes: string = JSON.parse(`"${expanded.replaceAll('"', '\\"')}"`)
    const repeat = (repeated: string) =>
      repeated.replace(/\{(\d+)\*([^{}]+)\}/g, (_, count, part) => part.repeat(Number(count)))
    return repeat(repeat(bytes))
  }
}

/** The groups of rows in ../socket/http11.txt, by their names. */
export function readTable(token: string): Readonly<Record<string, readonly Row[]>> {
  const text = readFileSync(join(import.meta.dir, '../socket/http11.txt'), 'utf8')
  const bytesOf = requestsOf(token)
  const sections = text.split(/^# /m).slice(1)
  return Object.fromEntries(
    sections.map((section) => {
      const [group = ''] = section.split(':')
      const rows = section.split('\n\n').flatMap((block) => {
        const listed = /^! (.*)$/m.exec(block)?.[1] ?? ''
        return [...block.matchAll(/^([\w -]+) \| (.*)$/gm)].map(([, answers = '', name = '']) => {
          return { name, sent: bytesOf(name), answers: answers === '-' ? '' : answers, listed }
        })
      })
      return [group, rows]
    }),
  )
}

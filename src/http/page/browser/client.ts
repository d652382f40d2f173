/** A plant. Its id is text, because a number of JavaScript rounds what is above 2^53. */
export interface Plant {
  readonly id: string
  readonly name: string
  readonly tag?: string
}

/** A page of plants, and the query of the next one. */
export interface Listed {
  readonly plants: readonly Plant[]
  readonly next: string | undefined
}

/** A request that failed for good: the server refused it, or the user gave it up. */
export class Refusal extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** The refusal that was thrown. Any other error is a bug, and is thrown again. */
export function refusalIn(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  throw error
}

/** The error codes that the page treats in a way of their own. */
export const CODES = { idInvalid: 40004, tokenInvalid: 40102, readOnly: 40301, notFound: 40402, exists: 40901 } as const

const ANSWER_TIMEOUT_MS = 30_000
/** The pause before a request is sent again, unless the server says another one. */
const RETRY_AFTER_S = 5
/** Too many requests, and answers of a server or a proxy that cannot serve now. */
const PASSING_STATUSES = [429, 502, 503, 504]
const DOWNLOAD_PAGE_PLANTS = 5000

/** Waits until a request may be sent again. Rejects with a `Refusal` if the user gives it up. */
export type Wait = (message: string, seconds: number) => Promise<void>

/** What `connect` returns. */
export type Client = ReturnType<typeof connect>

/**
 * The API for the owner of a token. A request that may succeed later is sent again after `wait`, and any other failure rejects
 * with a `Refusal`. If the server does not accept the token, `onInvalid` is told before.
 */
export function connect(token: string, wait: Wait, onInvalid: (message: string) => void) {
  const closed = new AbortController()
  // A header takes no other characters, and no token has any.
  const authorization = `Bearer ${token.replace(/[^!-~]/g, '?')}`
  const headers = { authorization, 'content-type': 'application/json' }

  async function fetchText(method: string, path: string, body: string | null) {
    const signal = AbortSignal.any([closed.signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)])
    const response = await fetch(path, { method, headers, body, signal, cache: 'no-store' })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  /** Returns the answer of success, or with one of the `expected` error codes. */
  async function send(method: string, path: string, body: string | null = null, ...expected: readonly number[]) {
    for (let tries = 1; ; tries++) {
      const answer = await fetchText(method, path, body).catch(() => undefined)
      closed.signal.throwIfAborted()
      const { error, message } = answer === undefined ? LOST : errorIn(answer.status, answer.text)
      if (answer !== undefined && (error === 0 || expected.includes(error))) return { ...answer, error, message, tries }
      if (error === CODES.tokenInvalid) onInvalid(message)
      if (answer !== undefined && !PASSING_STATUSES.includes(answer.status)) throw new Refusal(error, message)
      await wait(message, Number(answer?.headers.get('retry-after')) || RETRY_AFTER_S)
    }
  }

  async function list(query: string): Promise<Listed> {
    const { text, headers } = await send('GET', `plants${query}`)
    return { plants: plantsIn(text), next: /<(\?[^>]*)>/.exec(headers.get('link') ?? '')?.[1] }
  }

  return {
    list,

    /** Whether the token may write. The server refuses this request for its token, then for its scope, then for its id. */
    async canWrite(): Promise<boolean> {
      const { error } = await send('DELETE', 'plants/none', null, CODES.idInvalid, CODES.readOnly)
      return error === CODES.idInvalid
    },

    /** Creates a plant. If its id is taken, the message of the refusal shows the stored plant. */
    async create(plant: Partial<Plant>): Promise<void> {
      const { error, message, tries } = await send('POST', 'plants', jsonOf(plant), CODES.exists)
      if (error === 0) return
      const { text } = await send('GET', `plants/${plant.id}?include=id`)
      const [stored] = plantsIn(`[${text}]`)
      // The answer to an earlier try may have been lost.
      if (tries > 1 && stored?.name === plant.name && stored?.tag === plant.tag) return
      throw new Refusal(error, `${message} It is “${stored?.name}”${stored?.tag ? ` (${stored.tag})` : ''}.`)
    },

    /** Deletes a plant. It may be gone already. */
    async delete({ id }: Plant): Promise<void> {
      await send('DELETE', `plants/${id}`, null, CODES.notFound)
    },

    /** All plants as JSON Lines. The browser keeps the parts of a blob outside of the memory of the page. */
    async download(tell: (count: number) => void): Promise<Blob> {
      const parts: Blob[] = []
      let count = 0
      for (let query: string | undefined = `?include=id&limit=${DOWNLOAD_PAGE_PLANTS}`; query !== undefined; ) {
        const { plants, next }: Listed = await list(query)
        parts.push(new Blob(plants.map((plant) => `${jsonOf(plant)}\n`)))
        count += plants.length
        tell(count)
        query = next
      }
      return new Blob(parts, { type: 'application/jsonl' })
    },

    /** Gives up all requests. */
    close: () => closed.abort(new Refusal(LOST.error, '')),
  }
}

const LOST = { error: -1, message: 'The server cannot be reached.' }

/** The error in an answer; 0 for a success. A proxy may have written another body than the server would. */
function errorIn(status: number, text: string): typeof LOST {
  if (status < 300) return { error: 0, message: '' }
  try {
    return JSON.parse(text)
  } catch {
    return { error: status * 100, message: `The server cannot be reached: the answer has the status ${status}.` }
  }
}

/** Like: 2 plants. */
export const countOf = (count: number): string => `${count.toLocaleString('en')} ${count === 1 ? 'plant' : 'plants'}`

/** The plants of a list with `include=id`. A quote within a name follows a backslash, so no name looks like an id. */
const plantsIn = (list: string): readonly Plant[] => JSON.parse(list.replace(/\{"id":(-?\d+)/g, '{"id":"$1"'))

/** The JSON of a plant. An integer keeps the digits that were typed. Any other id is sent as text, and refused. */
function jsonOf({ id, name, tag }: Partial<Plant>): string {
  const json = JSON.stringify({ id, name, tag })
  return id !== undefined && /^(?:0|-?[1-9]\d*)$/.test(id) ? json.replace(`"${id}"`, id) : json
}

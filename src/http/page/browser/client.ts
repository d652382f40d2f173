import { FIELD_NAMES } from './fields.ts'

/** A plant with the texts of its fields. Its id is text, because a number of JavaScript rounds what is above 2^53. */
export type Plant = Readonly<Record<string, string>> & { readonly id: string; readonly name: string }

/** A page of plants, and the query of the next one. */
export interface PlantPage {
  readonly plants: readonly Plant[]
  readonly next: string | undefined
}

/** A request failed for good: the server refused it, or the user gave it up. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message)
  }
}

/** The refusal that was thrown. Any other error is a bug, and is thrown again. */
export function refusalIn(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  throw error
}

/** The error codes that the page treats in a way of their own. */
export const CODES = { idInvalid: 40004, tokenInvalid: 40102, readOnly: 40301, notFound: 40402, exists: 40901 } as const

/** Too many requests, and answers of a server or a proxy that cannot serve now. */
const PASSING_STATUSES = [429, 502, 503, 504]
/** The pause before a request is sent again, unless the server says another one. */
const RETRY_AFTER_S = 5

/** Waits until a request may be sent again. Rejects with a `Refusal` if the user gives it up. */
export type Wait = (message: string, seconds: number) => Promise<void>

/** What `connect` returns. */
export type Client = ReturnType<typeof connect>

/** A token that the server has accepted. */
export interface Session {
  readonly client: Client
  readonly canWrite: boolean
}

/** The API for the owner of a token. A request that may succeed later is sent again after `wait`. Others reject with a `Refusal`. */
export function connect(token: string, wait: Wait, onInvalid: (message: string) => void) {
  // A header takes no other characters, and no token has any.
  const headers = { authorization: `Bearer ${token.replace(/[^!-~]/g, '?')}`, 'content-type': 'application/json' }

  /** Returns the answer of success, or the one with an `expected` error code. */
  async function send(method: string, path: string, body: string | null = null, ...expected: readonly number[]) {
    for (let tries = 1; ; tries++) {
      const answer = await fetch(path, { method, headers, body, cache: 'no-store' })
        .then(async (response) => ({ response, text: await response.text() }))
        .catch(() => ({ response: Response.error(), text: '' }))
      const { error, message } = errorIn(answer.response, answer.text)
      if (error === 0 || expected.includes(error)) return { ...answer, error, message, tries }
      if (error === CODES.tokenInvalid) onInvalid(message)
      if (!PASSING_STATUSES.includes(Math.floor(error / 100))) throw new Refusal(error, message)
      await wait(message, Number(answer.response.headers.get('retry-after')) || RETRY_AFTER_S)
    }
  }

  return {
    /** Whether the token may write. The server refuses this request for its token, then for its scope, then for its id. */
    async canWrite(): Promise<boolean> {
      const { error } = await send('DELETE', 'plants/none', null, CODES.idInvalid, CODES.readOnly)
      return error === CODES.idInvalid
    },

    /** The page of a list. The server gives the query of the next one relative to the list. */
    async list(query: string): Promise<PlantPage> {
      const { text, response } = await send('GET', `plants${query}`)
      return { plants: plantsIn(text), next: /<(\?[^>]*)>/.exec(response.headers.get('link') ?? '')?.[1] }
    },

    /** Creates a plant. If its id is taken, the message of the refusal shows the stored plant. */
    async create(plant: Partial<Plant>): Promise<void> {
      const { error, message, tries } = await send('POST', 'plants', toJson(plant), CODES.exists)
      if (error === 0) return
      const { text } = await send('GET', `plants/${plant.id}?include=id`)
      const [stored = plant]: readonly Partial<Plant>[] = plantsIn(`[${text}]`)
      // The answer to an earlier try may have been lost.
      if (tries > 1 && FIELD_NAMES.every((field) => stored[field] === plant[field])) return
      const { id: _, name, ...others } = stored
      const details = Object.values(others).join(', ')
      throw new Refusal(error, `${message} It is “${name}”${details && ` (${details})`}.`)
    },

    /** Deletes a plant. It may be gone already. */
    async delete({ id }: Plant): Promise<void> {
      await send('DELETE', `plants/${id}`, null, CODES.notFound)
    },
  }
}

/** The error in an answer; 0 for a success. Without an answer it is 502, as a proxy says it. */
function errorIn({ ok, status }: Response, text: string): { readonly error: number; readonly message: string } {
  if (ok) return { error: 0, message: '' }
  if (status === 0) return { error: 50200, message: 'The server cannot be reached.' }
  try {
    return JSON.parse(text)
  } catch {
    return { error: status * 100, message: `The server cannot be reached: the answer has the status ${status}.` }
  }
}

/** The plants of a list with `include=id`. Within a name a quote follows a backslash, so no name looks like an id. */
const plantsIn = (list: string): readonly Plant[] => JSON.parse(list.replace(/\{"id":(-?\d+)/g, '{"id":"$1"'))

/** The JSON of a plant. An integer keeps the digits that were typed. Any other id is sent as text, and refused. */
export function toJson(plant: Partial<Plant>): string {
  const { id } = plant
  const json = JSON.stringify(plant, FIELD_NAMES)
  return id !== undefined && /^(?:0|-?[1-9]\d*)$/.test(id) ? json.replace(`"${id}"`, id) : json
}

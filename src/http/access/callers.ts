import { LRUCache } from 'lru-cache'
import { AppError } from '../../domain/error.ts'
import type { Store, Version } from '../../domain/store.ts'
import { hashToken, isTokenText, type Token, tokenState } from '../../domain/token.ts'
import type { CappedList } from '../list.ts'
import type { RequestStatistics } from '../statistics.ts'

/** What known callers and their lists may take, in bytes. Who has not come for the longest time is forgotten first. */
export const CALLERS_MAX_BYTES = 32 * 1024 * 1024
/** The largest list that is remembered, and how many of one caller are: of one more, all are forgotten. */
export const REMEMBERED_LIST_MAX_BYTES = 256 * 1024
export const REMEMBERED_LISTS_MAX = 32
/** What a caller and a list take besides their texts, measured. */
const CALLER_BYTES = 1024
const LIST_BYTES = 512

/** Whoever has shown a token that lets in. */
export interface Caller {
  readonly token: Token
  /** As of which the token was looked up. */
  readonly version: Version | undefined
  /** The capped lists that they were answered. */
  lists: readonly RememberedList[]
}

interface RememberedList extends CappedList {
  readonly url: string
  /** Of the user's plants: as of then the list is true. */
  version: Version
  readonly bytes: number
}

/** Who gets in. */
export type Callers = ReturnType<typeof rememberCallers>

/** What the check of a token needs: where tokens are, what to do with one that was used, and the time. */
export interface CallersOptions {
  readonly store: Pick<Store, 'findToken' | 'tokensVersion' | 'plantsVersion' | 'hasOnlyGrown'>
  readonly recordUse: (token: Token) => void
  /** Told what had to be read. */
  readonly statistics: Pick<RequestStatistics, 'miss'> | undefined
  /** Milliseconds since 1970-01-01 UTC. */
  readonly nowMs: () => number
}

/**
 * Looks up who comes with an `Authorization` line, and remembers them with the lists that they were answered. What is
 * remembered is used only as long as nothing has changed it, by whomever: exactly what reading it anew would give.
 */
export function rememberCallers({ store, recordUse, statistics, nowMs }: CallersOptions) {
  const known = new LRUCache<string, Caller>({ maxSize: CALLERS_MAX_BYTES })

  const admit = (token: Token): boolean => {
    if (tokenState(token, nowMs()) !== 'active') return false
    recordUse(token)
    return true
  }

  /** The caller who came with this line before, if nothing about tokens has changed since and their time has not come. */
  const recall = (line: string | null): Caller | undefined => {
    const caller = line === null ? undefined : known.get(line)
    const isTrue = caller?.version !== undefined && caller.version === store.tokensVersion()
    return isTrue && admit(caller.token) ? caller : undefined
  }

  const remember = (line: string, caller: Caller) => {
    // Twice, because a size is taken only of what is new.
    known.delete(line)
    known.set(line, caller, { size: callerBytes(line, caller) })
  }

  return {
    recall,

    /** The caller whose `Authorization` line this is, and `text` its token. Rejects with `token_invalid`. */
    async identify(line: string, text: string): Promise<Caller> {
      const caller = recall(line)
      if (caller !== undefined) return caller
      if (!isTokenText(text)) throw new AppError('token_invalid')
      statistics?.miss('callers')
      const version = store.tokensVersion()
      const token = await store.findToken(hashToken(text))
      if (token === undefined || !admit(token)) throw new AppError('token_invalid')
      const identified = { token, version, lists: [] }
      // Whoever is known already is known again once it can be told what has changed.
      if (version !== undefined) remember(line, identified)
      return identified
    },

    /** The list that the caller was answered at this URL, if that is what it still is. */
    recallList({ token: { userId }, lists }: Caller, url: string): CappedList | undefined {
      const list = listAt(url, lists)
      const version = store.plantsVersion(userId)
      if (list === undefined || version === undefined) return undefined
      if (list.version === version) return list
      // Plants that were created behind its last one change nothing of a list that more plants followed before.
      if (list.next === undefined || !store.hasOnlyGrown(userId, list.version, list.next)) return undefined
      list.version = version
      return list
    },

    /** Remembers a list that was read after the user's plants had this version. */
    rememberList(line: string, url: string, caller: Caller, version: Version | undefined, list: CappedList): void {
      statistics?.miss('lists')
      const { body, etag, link, next } = list
      if (version === undefined || typeof body !== 'string') return
      const bytes = textBytes(body) + textBytes(url) + LIST_BYTES
      if (bytes > REMEMBERED_LIST_MAX_BYTES || known.peek(line) !== caller) return
      const others = caller.lists.filter((other) => other.url !== url)
      const kept = others.length < REMEMBERED_LISTS_MAX ? others : []
      caller.lists = [...kept, { body, etag, link, next, url, version, bytes }]
      remember(line, caller)
    },
  }
}

/** A loop, because this is all that many a request asks for, and what `find` takes would be made for each. */
function listAt(url: string, lists: readonly RememberedList[]): RememberedList | undefined {
  for (const list of lists) if (list.url === url) return list
  return undefined
}

const callerBytes = (line: string, { lists }: Caller): number =>
  lists.reduce((sum, { bytes }) => sum + bytes, textBytes(line) + CALLER_BYTES)

/** What the runtime takes for a text: a byte for each character, or two if one of them is not of Latin-1. */
const textBytes = (text: string): number => (/[\u0100-\uffff]/.test(text) ? 2 : 1) * text.length

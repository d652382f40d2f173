type End = (thread: Worker) => void

/** Ways in which a thread comes to its end. */
export const ENDS: Readonly<Record<string, End>> = {
  'meets an error that nobody catches': (thread) => thread.postMessage({ call: 'what it does not know' }),
  'is terminated': (thread) => thread.terminate(),
}

/** Watches the threads that are started from now on, which are real ones, and can bring the end of one about. */
export function watchThreads() {
  const Real = globalThis.Worker
  const closed: Promise<unknown>[] = []
  let end: End | undefined
  let place: 'before' | 'after' | undefined

  class Watched extends Real {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      super(...args)
      closed.push(new Promise((resolve) => this.addEventListener('close', resolve)))
    }

    override postMessage(message: object) {
      const isItsTurn = end !== undefined && 'group' in message
      if (isItsTurn && place === 'before') this.#end()
      super.postMessage(message)
      if (isItsTurn && place === 'after') this.#end()
    }

    #end() {
      const ending = end
      end = undefined
      ending?.(this)
    }
  }
  // The same class, but for what it tells.
  globalThis.Worker = Watched as typeof Worker

  return {
    /** Ends the thread that is sent a group next, before or after it is sent. */
    endAt(nextPlace: 'before' | 'after', how: End): void {
      place = nextPlace
      end = how
    },
    /** Whether that has come about. */
    hasEnded: () => place !== undefined && end === undefined,
    /** Resolves when all threads that were started have ended, to how many they were. */
    allClosed: async () => (await Promise.all(closed)).length,
    [Symbol.dispose]() {
      globalThis.Worker = Real
    },
  }
}

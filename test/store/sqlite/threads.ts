type End = (thread: Worker) => void

/** Ways in which a thread can end. */
export const ENDS: Readonly<Record<string, End>> = {
  'meets an error that nobody catches': (thread) => thread.postMessage('no JSON'),
  'is terminated': (thread) => thread.terminate(),
}

/** Watches the real threads that start from now on, and can end one of them. */
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

    override postMessage(message: unknown) {
      const isItsTurn = end !== undefined && String(message).includes('"group"')
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
  // The class has the same interface.
  globalThis.Worker = Watched as typeof Worker

  return {
    /** Ends the thread that gets the next group, before or after it gets the group. */
    endAt(nextPlace: 'before' | 'after', how: End): void {
      place = nextPlace
      end = how
    },
    /** Whether that thread was ended. */
    hasEnded: () => place !== undefined && end === undefined,
    /** Resolves to the number of threads once all of them have ended. */
    allClosed: async () => (await Promise.all(closed)).length,
    [Symbol.dispose]() {
      globalThis.Worker = Real
    },
  }
}

type End = (thread: Worker, send: (message: string) => void) => void

/** Ways in which a thread can end. */
export const ENDS: Readonly<Record<string, End>> = {
  'meets an error that nobody catches': (_, send) => send('no JSON'),
  'is terminated': (thread) => thread.terminate(),
}

/** Watches the real threads that start from now on, and can end one of them. */
export function watchThreads() {
  const Real = globalThis.Worker
  const { postMessage } = MessagePort.prototype
  const closed: Promise<unknown>[] = []
  let endNow: ((how: End) => void) | undefined
  let atNextGroup: End | undefined
  let hasEnded = false

  class Watched extends Real {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      super(...args)
      closed.push(new Promise((resolve) => this.addEventListener('close', resolve)))
      const thread = this
      MessagePort.prototype.postMessage = function (message: unknown) {
        const send = (text: unknown) => postMessage.call(this, text)
        endNow = (how) => {
          atNextGroup = undefined
          hasEnded = true
          how(thread, send)
        }
        if (atNextGroup !== undefined && String(message).includes('"group"')) endNow(atNextGroup)
        send(message)
      }
    }
  }
  // The class has the same interface.
  globalThis.Worker = Watched as typeof Worker

  return {
    /** Ends the thread before it gets the next group. */
    endAtNextGroup(how: End): void {
      atNextGroup = how
    },
    /** Ends the thread that got the last message. */
    end: (how: End) => endNow?.(how),
    /** Whether a thread was ended. */
    hasEnded: () => hasEnded,
    /** Resolves to the number of threads once all of them have ended. */
    allClosed: async () => (await Promise.all(closed)).length,
    [Symbol.dispose]() {
      globalThis.Worker = Real
      MessagePort.prototype.postMessage = postMessage
    },
  }
}

import { type GroupWriter, openGroupWriter } from './group-commit.ts'
import type { Message, Sent } from './writer.ts'

declare const self: Worker

/** The entry point of the thread that writes. writer.ts starts it and defines its messages. */
let writer: GroupWriter | undefined

const send = (sent: Sent) => self.postMessage(sent)

self.onmessage = ({ data: message }: MessageEvent<Message>) => {
  if ('path' in message) {
    writer = openGroupWriter(message)
    return
  }
  if (writer === undefined) throw new TypeError('the first message must be the options')
  if ('checkOthersAtMs' in message) return writer.checkOthers(message.checkOthersAtMs)
  if ('group' in message) {
    send({ answer: writer.perform(message.group, message.nowMs) })
    // After the answer, so that only the next group waits for it.
    const report = writer.checkpointIfDue(message.group)
    if (report !== undefined) send(report)
    return
  }
  send({ answer: writer[message.call]() })
}

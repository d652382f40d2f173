import { createHash } from 'node:crypto'

/** Constants of the file format of macOS: `mach-o/loader.h` and `kern/cs_blobs.h` of Apple's XNU. */
const LOAD_COMMANDS_AT = 32
const LC_SEGMENT_64 = 0x19
const LC_CODE_SIGNATURE = 0x1d
const SUPER_BLOB = 0xfade0cc0
const CODE_DIRECTORY = 0xfade0c02
const VERSION_WITH_EXEC_SEGMENT = 0x20400
const AD_HOC_BY_LINKER = 0x20002
const MAIN_BINARY = 1n
const SHA256 = { type: 2, bytes: 32 }

const HEADER_BYTES = 88
/** A super blob with one entry. */
const INDEX_BYTES = 20
const PAGE_BITS = 12
const PAGE_BYTES = 1 << PAGE_BITS
/** The name that linkers and Bun give to what they sign. */
const IDENTIFIER = 'a.out\0'

/** Where the parts of an executable for macOS are that its signature covers or is in. */
function layoutOf(file: Buffer) {
  const found = new Map<string, number>()
  let at = LOAD_COMMANDS_AT
  for (let left = file.readUInt32LE(16); left > 0; left--) {
    const command = file.readUInt32LE(at)
    if (command === LC_CODE_SIGNATURE) found.set('signature', at)
    if (command === LC_SEGMENT_64) found.set(file.toString('latin1', at + 8, at + 24).replace(/\0+$/, ''), at)
    at += file.readUInt32LE(at + 4)
  }
  const of = (name: string): number => {
    const command = found.get(name)
    if (command === undefined) throw new Error(`the executable has no load command for ${name}`)
    return command
  }
  const signature = of('signature')
  return { text: of('__TEXT'), linkEdit: of('__LINKEDIT'), signature, signatureAt: file.readUInt32LE(signature + 8) }
}

/**
 * Returns an executable for macOS with a new ad-hoc signature in the form that linkers write: hashes of all pages, and no name of
 * anybody. Bun 1.4.5 signs for arm64 alone. For x64 it leaves the runtime's own signature, which no longer fits.
 */
export function signAdHoc(original: Buffer): Buffer {
  const { text, linkEdit, signature, signatureAt } = layoutOf(original)
  const pages = Math.ceil(signatureAt / PAGE_BYTES)
  const directoryBytes = HEADER_BYTES + IDENTIFIER.length + pages * SHA256.bytes
  const bytes = INDEX_BYTES + directoryBytes
  const file = Buffer.concat([original.subarray(0, signatureAt), Buffer.alloc(bytes)])
  const linkEditBytes = BigInt(signatureAt + bytes) - file.readBigUInt64LE(linkEdit + 40)
  // The load commands are on hashed pages, so they change first.
  file.writeUInt32LE(bytes, signature + 12)
  file.writeBigUInt64LE(linkEditBytes, linkEdit + 48)
  file.writeBigUInt64LE(BigInt(Math.ceil(Number(linkEditBytes) / PAGE_BYTES) * PAGE_BYTES), linkEdit + 32)

  const header = Buffer.alloc(INDEX_BYTES + HEADER_BYTES)
  const words = [SUPER_BLOB, bytes, 1, 0, INDEX_BYTES, CODE_DIRECTORY, directoryBytes, VERSION_WITH_EXEC_SEGMENT]
  const offsets = [AD_HOC_BY_LINKER, HEADER_BYTES + IDENTIFIER.length, HEADER_BYTES, 0, pages, signatureAt]
  for (const [index, word] of [...words, ...offsets].entries()) header.writeUInt32BE(word, index * 4)
  header.set([SHA256.bytes, SHA256.type, 0, PAGE_BITS], INDEX_BYTES + 36)
  header.writeBigUInt64BE(file.readBigUInt64LE(text + 40), INDEX_BYTES + 64)
  header.writeBigUInt64BE(file.readBigUInt64LE(text + 48), INDEX_BYTES + 72)
  header.writeBigUInt64BE(MAIN_BINARY, INDEX_BYTES + 80)
  file.set([...header, ...Buffer.from(IDENTIFIER)], signatureAt)
  for (let page = 0; page < pages; page++) {
    const hash = hashOfPage(file, page, PAGE_BYTES, signatureAt)
    file.set(hash, signatureAt + header.length + IDENTIFIER.length + page * SHA256.bytes)
  }
  return file
}

/** What is wrong with the signature of an executable for macOS. Reads the file as the kernel does, whoever has signed it. */
export function signatureProblems(file: Buffer): readonly string[] {
  const { signature, signatureAt, linkEdit } = layoutOf(file)
  const end = signatureAt + file.readUInt32LE(signature + 12)
  const linkEditEnd = Number(file.readBigUInt64LE(linkEdit + 40) + file.readBigUInt64LE(linkEdit + 48))
  const ends = [end, linkEditEnd].every((each) => each === file.length)
  const directory = signatureAt + file.readUInt32BE(signatureAt + 16)
  if (file.readUInt32BE(signatureAt) !== SUPER_BLOB || file.readUInt32BE(directory) !== CODE_DIRECTORY) {
    return ['it has no code directory']
  }
  const word = (index: number) => file.readUInt32BE(directory + index * 4)
  const [hashesAt, pages, limit] = [directory + word(4), word(7), word(8)]
  const pageBytes = 1 << file.readUInt8(directory + 39)
  const wrong = Array.from({ length: pages }, (_, page) => page).filter((page) => {
    const at = hashesAt + page * SHA256.bytes
    return !hashOfPage(file, page, pageBytes, limit).equals(file.subarray(at, at + SHA256.bytes))
  })
  return [
    ...(ends ? [] : ['the file does not end with the signature']),
    ...(limit === signatureAt && pages === Math.ceil(limit / pageBytes) ? [] : ['it does not cover the whole file']),
    ...(wrong.length === 0 ? [] : [`${wrong.length} pages have another hash`]),
  ]
}

const hashOfPage = (file: Buffer, page: number, pageBytes: number, limit: number): Buffer =>
  createHash('sha256')
    .update(file.subarray(page * pageBytes, Math.min((page + 1) * pageBytes, limit)))
    .digest()

/** Texts that would become code or markup, or break the page, if they were not shown as text. */
const HOSTILE = [
  ...`<script>hostile = 1</script>|<img src=x onerror="hostile = 1">|"><svg onload=hostile=1>|</td></table><h1>x`.split(
    '|',
  ),
  ...`javascript:hostile=1|{{constructor.constructor("hostile = 1")()}}|\${hostile = 1}|&lt;b&gt;&amp;&#60;|<!--`.split(
    '|',
  ),
  ...String.raw`{"id":1}|[{"id":7,"name":"x"},{"id":8|","id":9,"|\|\"|'|__proto__|constructor|toString`.split('|'),
  ...'`|  two  spaces  |line\nline|\ttab|\u202eright to left|\u2066isolate|\ufeffBOM|\u0007\u001b[31m'.split('|'),
  ...['\u0085\u2028\u2029', '🪴'.repeat(9), 'Z̸̛͈'.repeat(40), 'x'.repeat(5000), '\u200b\u3164'],
  ...'שלום|مرحبا|| |0|null|undefined|NaN|https://example.org/|<a href="https://example.org">'.split('|'),
  ...'<link rel=stylesheet href=//example.org/x.css>|<base href=//example.org>|<style>*{display:none}</style>'.split(
    '|',
  ),
  ...'<iframe src=//example.org>|<form action=//example.org>|<meta http-equiv=refresh content=0>'.split('|'),
]

export const HOSTILE_TEXTS = HOSTILE.length

/** A plant of such texts. */
export const hostile = (index: number) => ({
  name: HOSTILE[index % HOSTILE.length] ?? '',
  tag: HOSTILE[(index * 7 + Math.floor(index / HOSTILE.length)) % HOSTILE.length] ?? '',
})

/** The memory that the runtime takes for a text: one byte a character, or two if one of them is outside of Latin-1. */
export const textBytes = (text: string): number => (/[\u0100-\uffff]/.test(text) ? 2 : 1) * text.length

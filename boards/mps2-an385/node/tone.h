/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* task=tone: the task of regehr2005 §7, which plays a tone on an output pin. */
#ifndef NODE_TONE_H
#define NODE_TONE_H

/* The body of the critical task. It toggles the pin (LED 0) at each release, every
 * options.period_us. Releases that come while the task cannot run count as one. */
void tone_run(void *unused);

#endif

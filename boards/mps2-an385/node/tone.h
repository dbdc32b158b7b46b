/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* task=tone: the task of regehr2005 §7, which plays a tone on an output pin. */
#ifndef NODE_TONE_H
#define NODE_TONE_H

/* The critical task's body: changes the pin (LED 0) each time that it is called, which is every
 * options.period_us. Calls that come while it may not run become one. */
void tone_run(void *unused);

#endif

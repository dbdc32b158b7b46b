#!/usr/bin/perl
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Draws comments and messages at random, to be judged by a reader who knows the field and not this
# code: each has to be understood at first reading.
#
#     scripts/draw-words.pl SEED [COUNT [FOLDER...]]
#
# COUNT is the number of each, 30 by default. The same seed draws the same items from the same tree.
use strict;
use warnings;

my ($seed, $count, @folders) = @ARGV;
die "usage: scripts/draw-words.pl SEED [COUNT [FOLDER...]]\n" unless ($seed // '') =~ /^\d+$/;
srand $seed;

my $C = qr{//[/!]?|/\*+|\*(?=\s)};
my %MARKS = (rs => qr{//[/!]?}, sv => qr{//}, c => $C, h => $C, S => $C, toml => qr{#}, py => qr{#}, pl => qr{#}, sh => qr{#}, '' => qr{#});
# The beginning of a message to the user in Rust, in C and in scripts.
my $MESSAGE = qr/miette!\(|help\(|#\[error\(|bail!\(|expected\(|refuse\(|#error|echo |die /;

my (@comments, @messages);
for my $file (split /\0/, `git ls-files -z @folders`) {
    next if $file =~ m{/generated/|^LICENSE|\.lock$};
    my ($kind) = $file =~ m{\.([^./]+)$};
    my $marks = $MARKS{ $kind // '' } or next;
    open(my $lines, '<', $file) or next;
    my ($begin, $text) = (0, '');
    my $flush = sub {
        push @comments, "$file:$begin\n$text" if $text =~ /\w+\W+\w+\W+\w+/ && $text !~ /SPDX/;
        $text = '';
    };
    while (my $line = <$lines>) {
        if ($line =~ /^\s*$marks(.*)/ && $line !~ /^#!/) {
            my $said = $1;
            $begin = $. unless $text;
            # Each paragraph counts as a comment.
            if ($said =~ /^\W*$/) { $flush->() }
            elsif ($said !~ /SPDX/) { $text .= "   $said\n" }
            next;
        }
        $flush->();
        if ($file !~ m{/tests?/|tests\.rs$} && $line =~ $MESSAGE && $line =~ /"((?:[^"\\]|\\.){20,})"|'([^']{20,})'/) {
            push @messages, "$file:$.\n   " . ($1 // $2) . "\n";
        }
    }
    $flush->();
}
for ([ 'comments', \@comments ], [ 'messages', \@messages ]) {
    my ($name, $all) = @$_;
    print "== ", scalar @$all, " $name\n\n";
    for (1 .. $count // 30) {
        print splice(@$all, int rand @$all, 1), "\n" if @$all;
    }
}

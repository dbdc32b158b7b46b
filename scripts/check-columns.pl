#!/usr/bin/perl
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Finds comments and prose beyond 100 columns in the files that git tracks, and prints their places.
#
# It ignores tables, headings, code in comments, and single words that cannot be broken (a link, a
# command in backticks). It also ignores generated files, and the RTL of rtl/, whose lines are part
# of netlists that have been placed. Exit: 0 none, 1 some.
use strict;
use warnings;
use open qw(:std :encoding(UTF-8));

my $COLUMNS = 100;
my $C = qr{//|/\*+|\*(?=\s)};
my %MARKS = (
    rs => qr{//[/!]?}, sv => qr{//}, c => $C, h => $C, S => $C,
    toml => qr{#}, py => qr{#}, pl => qr{#}, sh => qr{#}, '' => qr{#},
);
my $UNBROKEN = qr/^\W*(?:`[^`]*`|!?\[[^\]]*\]\([^)]*\)|\S)+$/;
my $LEFT_OUT = qr{/generated/|^rtl/.*\.sv$};
my $CODE = qr/^(?: {4}|\s*\||.*\S {2,}\S.* {2,}\S)/;

my $found = 0;
for my $file (split /\0/, `git ls-files -z`) {
    my ($kind) = $file =~ m{\.([^./]+)$};
    $kind //= '';
    next if $file =~ $LEFT_OUT || ($kind ne 'md' && !$MARKS{$kind});
    open(my $lines, '<', $file) or next; # deleted, not yet committed
    no warnings 'utf8';
    my $is_code = 0;
    while (my $line = <$lines>) {
        chomp $line;
        $is_code = !$is_code if $kind eq 'md' && $line =~ /^\s*```/;
        next if length $line <= $COLUMNS;
        my $prose;
        if ($kind eq 'md') { $prose = $line unless $is_code || $line =~ /^\s*[|<#]/ }
        elsif ($line !~ /\\$/ && $line =~ /^\s*$MARKS{$kind}(.*)/) { $prose = $1 unless $1 =~ $CODE }
        next unless defined $prose && $prose =~ s/^\s+|\s+$//gr !~ $UNBROKEN;
        print STDERR "$file:$.: ", length $line, " columns\n";
        $found = 1;
    }
}
exit $found;

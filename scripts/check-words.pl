#!/usr/bin/perl
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Finds type names in Rust that have two meanings, and names that are not nouns.
#
# - A word of the glossary ("Words" in docs/architecture.md) names one type.
# - Any other name stands for at most two types, unless every program has one.
# - A participle names none.
#
# crates/verify is left out: it shares nothing with the crates that it checks, not even names. So is
# the written form of a certificate, which has the names that crates/verify reads.
# Exit: 0 none, 1 some.
use strict;
use warnings;

my %CONVENTIONAL = map { $_ => 1 } qw(Args Cli Command Error Options Outcome Row);
my $PARTICIPLE = qr/^(?:Alternating|Following|Found|Given|Held|Kept|Known|Left|Lost|Made|Meant
    |Running|Seen|Standing|Taken|Told|Waiting|Way|\w*[^e]ed)$/x;

# The words of the glossary, written as a type's name: `top half` is TopHalf.
my %glossary;
open(my $page, '<', 'docs/architecture.md') or die "docs/architecture.md: $!\n";
my $is_glossary = 0;
while (<$page>) {
    $is_glossary = /^## Words$/ if /^## /;
    next unless $is_glossary && /^\| ([^|]+) \|/ && $1 ne 'word' && $1 !~ /^-/;
    $glossary{ join '', map { ucfirst } split /[ -]/ } = 1 for split /, /, $1;
}
close $page;
die "docs/architecture.md has no table of words that this script can read\n" unless %glossary;

my %places;
for my $file (split /\0/, `git ls-files -z 'crates/*/src/*.rs'`) {
    next if $file =~ m{^crates/verify/|/tests/|/tests\.rs$|^crates/analysis/src/certificate\.rs$};
    open(my $source, '<', $file) or next; # deleted, not yet committed
    while (<$source>) {
        last if /^mod tests \{/;
        push @{ $places{$1} }, "$file:$." if /^\s*(?:pub(?:\([a-z ]+\))? )?(?:struct|enum|trait|union) (\w+)/;
        push @{ $places{$1} }, "$file:$." if /^(?:pub(?:\([a-z ]+\))? )?type (\w+)/;
    }
}

my $found = 0;
for my $name (sort keys %places) {
    my @at = @{ $places{$name} };
    my $most = $CONVENTIONAL{$name} ? @at : $glossary{$name} ? 1 : 2;
    $most = 0 if $name =~ $PARTICIPLE;
    next if @at <= $most;
    print STDERR "$name: @at\n";
    $found = 1;
}
exit $found;
